import Glibc
import Synchronization
import Testing

@testable import NetOptCommands

/// Tests of `Interruption`, which runs an action at the first SIGINT or SIGTERM. `receive` stands for the
/// arrival of a signal.
@Suite struct InterruptionTests {
  @Test("the first signal runs the action, and a second one changes nothing")
  func firstSignal() {
    let runs = Atomic(0)
    let interruption = Interruption()
    #expect(interruption.signal == nil)
    interruption.onSignal { runs.add(1, ordering: .relaxed) }
    interruption.receive(SIGINT)
    interruption.receive(SIGTERM)
    #expect(runs.load(ordering: .relaxed) == 1)
    #expect(interruption.signal == SIGINT)
  }

  @Test("an action that is set after the signal runs at once")
  func lateAction() {
    let runs = Atomic(0)
    let interruption = Interruption()
    interruption.receive(SIGTERM)
    interruption.onSignal { runs.add(1, ordering: .relaxed) }
    #expect(runs.load(ordering: .relaxed) == 1)
  }
}
