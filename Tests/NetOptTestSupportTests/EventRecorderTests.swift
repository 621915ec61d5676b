import NetOptTestSupport
import Testing

@Suite struct EventRecorderTests {
  @Test func keepsEventsInTheirOrder() async throws {
    let recorder = EventRecorder<Int>()
    (1...3).forEach(recorder.record)
    #expect(recorder.events == [1, 2, 3])
    #expect(try await recorder.wait(for: "what is there") { $0.count == 3 } == [1, 2, 3])
  }

  @Test func waitsForEventsOfOtherTasks() async throws {
    let recorder = EventRecorder<Int>()
    async let events = recorder.wait(for: "a hundred events") { $0.count == 100 }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 { group.addTask { recorder.record(number) } }
    }
    #expect(try await Set(events) == Set(0..<100))
  }

  @Test("a wait past its limit fails with its description and the recorded events")
  func failsAfterLimit() async throws {
    let recorder = EventRecorder<Int>()
    recorder.record(7)
    let error = try #require(
      await #expect(throws: TestSupportError.self) {
        try await recorder.wait(for: "the eighth", within: .milliseconds(10)) { $0.contains(8) }
      })
    #expect(error.description.contains("the eighth") && error.description.contains("[7]"))
  }

  @Test("a cancelled task does not wait for events") func cancelledTask() async throws {
    let recorder = EventRecorder<Int>()
    let task = Task { try await recorder.wait(for: "nothing", within: .seconds(600)) { !$0.isEmpty } }
    task.cancel()
    await #expect(throws: TestSupportError.self) { try await task.value }
  }
}
