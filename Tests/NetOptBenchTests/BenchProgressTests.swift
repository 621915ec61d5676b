import NetOptBench
import Testing

@Suite struct BenchProgressTests {
  @Test("the progress text has the block, the rounds and the remaining time, if they are known")
  func progressText() {
    #expect(
      BenchProgress(.warm, done: 34, planned: 80, remaining: .milliseconds(11_200)).text()
        == "warm 34/80 rounds, 12 s left")
    #expect(BenchProgress(.cold, done: 3, planned: nil, remaining: nil).text() == "cold 3 rounds")
  }
}
