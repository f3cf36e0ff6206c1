"""The app in a browser on this machine: who may reach it, and when it ends; no screens."""
