VALUE = "the user's own schemas"
