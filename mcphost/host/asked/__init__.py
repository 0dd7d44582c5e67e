"""What servers ask: the desks that answer, each for one kind of question, and the person is asked by all of them."""
