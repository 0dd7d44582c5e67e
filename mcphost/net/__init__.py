"""What servers, sign-ins and models over HTTP share: which way a request takes, and whose certificates are trusted."""
