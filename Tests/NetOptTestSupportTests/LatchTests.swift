import NetOptTestSupport
import Testing

@Suite struct LatchTests {
  @Test("a latch holds tasks until it opens") func holdsTasks() async throws {
    let latch = Latch()
    let tasks = (0..<3).map { _ in Task { try await latch.wait() } }
    try await wait(for: "three tasks at the gate") { latch.waiting == 3 }
    #expect(!latch.opened)
    latch.open()
    for task in tasks { try await task.value }
    try await latch.wait()
    #expect(latch.opened && latch.waiting == 0)
  }

  @Test("a cancelled task stops waiting at a latch") func cancelledTask() async throws {
    let latch = Latch()
    let task = Task { try await latch.wait() }
    try await wait(for: "a task at the gate") { latch.waiting == 1 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(latch.waiting == 0)
  }
}
