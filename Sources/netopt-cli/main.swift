import Glibc
import NetOptCommands

// Signals and standard streams are prepared before the first task. The task starts threads, which inherit the
// signal mask, and opens descriptors, which must not get the number of a closed standard stream.
Interruption.holdSignals()
let interruption = Interruption()
let context = CommandContext.process()
Task.detached {
  exit(await Program.netopt.run(in: context, interruption: interruption).number)
}
interruption.waitForSignals()
