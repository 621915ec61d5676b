import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptFuzzing

/// Sends generated responses over real connections and checks what the client makes of them: a short form of
/// `make fuzz FUZZ_TARGETS='heads chunks frames'`.
///
/// `ANSWER_SEEDS=238` or `ANSWER_SEEDS=1-100000` selects other seeds. `ANSWER_TARGETS=frames` selects some of
/// the targets; commas separate their names.
@Suite struct AnswerFuzzTests {
  private static let environment = ProcessInfo.processInfo.environment

  /// The selected targets; by default all whose inputs are responses.
  private static let targets = FuzzTarget.ofAnswers.filter { target in
    environment["ANSWER_TARGETS"].map { $0.split(separator: ",").contains { $0 == target.rawValue } } ?? true
  }

  /// The selected seeds; by default the first 600 of `frames` and the first 2,500 of each other target. Each
  /// seed makes one response.
  private static func seeds(_ target: FuzzTarget) -> ClosedRange<UInt64> {
    let ends = environment["ANSWER_SEEDS"]?.split(separator: "-").compactMap { UInt64($0) } ?? []
    if let first = ends.first, let last = ends.last, first <= last { return first...last }
    return 1...(target == .frames ? 600 : 2500)
  }

  @Test("the client delivers a generated response completely or rejects it", arguments: targets)
  func generatedResponses(_ target: FuzzTarget) async throws {
    let faults = await Patience.outcome(ofBlocking: {
      Self.seeds(target).compactMap { seed -> String? in
        let input = AnswerMaker.input(for: target, seed: seed) ?? []
        return target.fault(in: input).map { "seed \(seed): \($0): \(ShownBytes.text(input))" }
      }
    })
    #expect(
      faults.isEmpty, "\(target.rawValue): \(faults.count)\n\(faults.prefix(20).joined(separator: "\n"))")
  }
}
