import Glibc
import NetOptCommands

// Signals and standard streams come first: the first task starts threads and opens descriptors.
Interruption.holdSignals()
let interruption = Interruption()
let context = CommandContext.process()
Task.detached {
  exit(await Program.netopt.run(in: context, interruption: interruption).number)
}
interruption.waitForSignals()
