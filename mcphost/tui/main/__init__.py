"""The main screen: header, tabs, and what fills them."""
