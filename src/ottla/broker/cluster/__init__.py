"""What makes a broker one of several: who is there, who is the controller, how brokers talk to each other."""
