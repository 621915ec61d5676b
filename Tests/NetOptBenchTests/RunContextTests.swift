import NetOptBench
import Testing

@Suite struct RunContextTests {
  @Test("the ID of a run is its date and its tag in four hexadecimal digits")
  func identifier() {
    #expect(Fixtures.context.runID == "20260822-7f3a")
    let other = RunContext(
      startedAt: Fixtures.context.startedAt, tag: 9, version: "", arguments: [], host: .init(os: ""))
    #expect(other.runID == "20260822-0009")
  }
}
