"""Models of an Ollama server, on this machine, in the network or hosted, by its own protocol."""
