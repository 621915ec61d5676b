import NetOptCore
import Testing

@testable import NetOptStorm

/// The requests that the storm draws at random, and the content of their bodies.
@Suite struct RequestGeneratorTests {
  @Test("the seed and the index determine a request")
  func seedDeterminesRequests() {
    let plans = (0..<500).map { RequestGenerator(seed: 3).plan($0) }
    #expect(plans == (0..<500).map { RequestGenerator(seed: 3).plan($0) })
    #expect(plans != (0..<500).map { RequestGenerator(seed: 4).plan($0) })
  }

  @Test("a target encodes the plan of its response, and other targets are rejected")
  func targets() {
    for index in 0..<2000 {
      let answer = RequestGenerator(seed: 5).plan(index).answer
      #expect(AnswerPlan(target: answer.target) == answer)
    }
    for target in ["/", "/once", "/once?1/2", "/cached/1?200/1/length/0/0/-1/0/0/0"] {
      #expect(AnswerPlan(target: target) == nil)
    }
  }

  @Test("a thousand drawn requests include every kind")
  func everyKind() {
    let plans = (0..<1000).map { RequestGenerator(seed: 6).plan($0) }
    #expect(Set(plans.map(\.host)) == Set(StormHost.all))
    #expect(Set(plans.map(\.method)) == [.get, .head, .post, .put, .delete])
    #expect(Set(plans.map(\.version)).count == 3)
    #expect(Set(plans.map(\.client)).count == RequestGenerator.clients)
    #expect(plans.contains { $0.connection == .fresh })
    #expect(plans.contains { $0.cancellation != nil })
    #expect(plans.contains { $0.timeout < RequestPlan.usualTimeout })
    #expect(plans.contains { $0.answer.cut != nil })
    #expect(plans.contains { $0.answer.cached != nil })
    #expect(plans.contains { $0.answer.framing == .close })
    #expect(
      plans.contains { if case .stream(let stream) = $0.upload { stream.failsAt != nil } else { false } })
    #expect(plans.contains { $0.upload.size > 100_000 })
  }

  @Test("content begins with its label, and misplaced bytes are found")
  func labelledContent() {
    let one = Content.answer(to: 12).bytes(1000)
    #expect(one.starts(with: Array("answer 12|".utf8)))
    #expect(Content.firstDifference(of: Array(one[100..<200]), at: 100, from: one) == nil)
    #expect(Content.firstDifference(of: Array(one[101..<200]), at: 100, from: one) != nil)
    #expect(Content.firstDifference(of: [1], at: 1000, from: one) == 1000)
    #expect(Content.answer(to: 12).position(of: one[500..<550]) == 500)
    #expect(Content.answer(to: 13).position(of: one[500..<550]) != 500)
  }
}
