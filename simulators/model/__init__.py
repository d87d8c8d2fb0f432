"""A simulated language model behind the chat-completions wire."""
