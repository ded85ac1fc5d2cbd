VALUE = "the user's own config"
