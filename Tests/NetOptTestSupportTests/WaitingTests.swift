import NetOptTestSupport
import Testing

@Suite struct WaitingTests {
  @Test("wait checks the condition until it holds") func waitsForCondition() async throws {
    var asked = 0
    try await wait(for: "the third time") {
      asked += 1
      return asked == 3
    }
    #expect(asked == 3)
  }

  @Test("a wait past its limit fails with its description") func failsAfterLimit() async throws {
    let error = try #require(
      await #expect(throws: TestSupportError.self) {
        try await wait(for: "the impossible", within: .milliseconds(5)) { false }
      })
    #expect(error.description.contains("the impossible"))
  }
}
