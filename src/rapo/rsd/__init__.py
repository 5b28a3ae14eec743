"""The Replay Suppression Diagnostic."""
