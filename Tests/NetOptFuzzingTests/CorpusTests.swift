import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptFuzzing

/// Runs each fuzz target on its corpus (the inputs in `Fuzz/Corpus`) and on mutations of these inputs: a
/// short form of `make fuzz`.
@Suite struct CorpusTests {
  private static let folder = RepositoryFile.path("Fuzz/Corpus")

  /// The inputs in the corpus of a target, with the names of their files.
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
    // Responses get fewer rounds: each of them needs a connection, and `AnswerFuzzTests` tests further ones.
    for round in 0..<(FuzzTarget.ofAnswers.contains(target) ? 100 : 600) {
      var bytes = inputs[Int(random.below(UInt64(inputs.count)))]
      for _ in 0...random.below(4) { InputMutation.mutate(&bytes, inputs, &random) }
      let input = bytes
      let fault = await Patience.outcome(ofBlocking: { target.fault(in: input) })
      #expect(fault == nil, "round \(round): \(ShownBytes.text(bytes))")
    }
  }

  /// Runs in a child process, because a trap ends the process. The note (`LastNote`) then shows the input
  /// that caused the trap.
  @Test(
    "an extreme value in place of any number causes no trap and breaks no rule",
    arguments: FuzzTarget.allCases)
  func extremesKeepRules(_ target: FuzzTarget) async throws {
    // The child process writes each input to the note before it uses the input.
    let note = try LastNote()
    await #expect(processExitsWith: .success) {
      [name = target.rawValue as String, path = note.path as String] in
      // After 300 s, SIGALRM ends the child process, in case an input makes it hang.
      alarm(300)
      let target = try #require(FuzzTarget(rawValue: name))
      let note = LastNote(path)
      var random = SplitMix64(seed: 1)
      let inputs = try Self.inputs(target)
      for (name, bytes) in inputs {
        let text = ExtremeText(bytes)
        // First one extreme number at a time: all variants if there are at most `share`, otherwise a random
        // sample of `share`. Then variants with several extreme numbers.
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
