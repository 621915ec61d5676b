import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptFuzzing

/// The short form of fuzzing: the corpora, and random mutations of them. `make fuzz` is the long form.
@Suite struct CorpusTests {
  private static let folder = RepositoryFile.path("Fuzz/Corpus")

  private static func inputs(_ target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
    let folder = "\(folder)/\(target.rawValue)"
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { name in
      (name, try FileBytes.read("\(folder)/\(name)", upTo: 1 << 20, as: "the corpus's", in: .list))
    }
  }

  @Test("every target has a corpus, and no other corpus exists") func corpora() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder)
    #expect(Set(folders) == Set(FuzzTarget.allCases.map(\.rawValue)))
    #expect(FuzzedInput.targets.allSatisfy { FuzzedInput(target: $0) != nil })
    #expect(FuzzedInput(target: "nothing") == nil)
  }

  @Test("every rule holds for the corpus of each target", arguments: FuzzTarget.allCases)
  func everyRuleHolds(_ target: FuzzTarget) async throws {
    let inputs = try Self.inputs(target)
    #expect(inputs.count >= 3)
    for (name, bytes) in inputs {
      let fault = await Patience.outcome(ofBlocking: { target.fault(in: bytes) })
      #expect(fault == nil, "\(name)")
    }
  }

  @Test("every rule holds for mutations of the corpus", arguments: FuzzTarget.allCases)
  func mutationsKeepRules(_ target: FuzzTarget) async throws {
    let inputs = try Self.inputs(target).map(\.bytes)
    var random = SplitMix64(seed: 1)
    // Responses have a test of their own, and each needs a connection.
    for round in 0..<(FuzzTarget.ofAnswers.contains(target) ? 100 : 600) {
      var bytes = inputs[Int(random.below(UInt64(inputs.count)))]
      for _ in 0...random.below(4) { InputMutation.mutate(&bytes, inputs, &random) }
      let input = bytes
      let fault = await Patience.outcome(ofBlocking: { target.fault(in: input) })
      #expect(fault == nil, "round \(round): \(ShownBytes.text(bytes))")
    }
  }

  /// Runs in a child process: a trap would end the tests.
  @Test(
    "an extreme value in place of any number causes no trap and breaks no rule",
    arguments: FuzzTarget.allCases)
  func extremesKeepRules(_ target: FuzzTarget) async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) {
      [name = target.rawValue as String, path = note.path as String] in
      // The alarm ends a hang with a signal.
      alarm(300)
      let target = try #require(FuzzTarget(rawValue: name))
      let note = LastNote(path)
      var random = SplitMix64(seed: 1)
      let inputs = try Self.inputs(target)
      for (name, bytes) in inputs {
        let text = ExtremeText(bytes)
        // Each place with each extreme value where that is fast, otherwise a sample; and several places at
        // once.
        let share = 750 / inputs.count
        let single =
          text.count <= share
          ? Array(0..<text.count) : (0..<share).map { _ in Int(random.below(UInt64(text.count))) }
        for input in single.map({ text[$0] }) + (0..<share / 4).map({ _ in text.drawn(using: &random) }) {
          note.write("\(name): " + String(decoding: input, as: UTF8.self))
          let fault = await Patience.outcome(ofBlocking: { target.fault(in: input) })
          #expect(fault == nil, "\(name): \(ShownBytes.text(input))")
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
