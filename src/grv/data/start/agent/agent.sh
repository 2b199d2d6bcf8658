#!/bin/sh
# Stands for your agent: replace the lines below by the command that starts it.
# It gets the task on its input, and in the file $GRV_TASK; $GRV_ATTEMPT counts from 1.
case "$(cat)" in
  *double*) printf 'def double(x):\n    return 2 * x\n' ;;
  *) printf '%s\n' 'The answer is \boxed{42}.' ;;
esac
