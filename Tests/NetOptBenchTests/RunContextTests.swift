import NetOptBench
import Testing

@Suite struct RunContextTests {
  @Test func theNameOfARunIsItsDayAndFourDigits() {
    #expect(Fixtures.context.runID == "20260822-7f3a")
    let other = RunContext(
      startedAt: Fixtures.context.startedAt, tag: 9, version: "", arguments: [], host: .init(os: ""))
    #expect(other.runID == "20260822-0009")
  }
}
