import Glibc
import NetOptCommands

// The signals and standard streams come first, because the first task starts threads and opens descriptors.
Interruption.holdSignals()
let interruption = Interruption()
let context = CommandContext.process()
Task.detached {
  exit(await Program.netopt.run(in: context, interruption: interruption).number)
}
interruption.waitForSignals()
