"""What a run does about faults: of servers, of results, and of the machine."""
