import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests that no number on the command line or in an input file makes a command trap or hang: each run ends
/// with an exit code. The commands run in child processes, because a trap would end the tests.
@Suite struct ExtremeOptionsTests {
  private static let url = "https://api.example.com/"

  /// Command lines. `extremeNumbers` replaces each `%` by a number, and each `@` by the path of a key ring.
  /// At present, no line has an `@`.
  private static let lines = [
    ["get", "--max-time=%", url], ["get", "--connect-timeout=%", url], ["get", "--max-redirs=%", url],
    ["get", "--retry=%", url], ["get", "--cache-mode=api", "--cache-ttl=%", url],
    ["get", "--resolve=%", url], ["get", "https://api.example.com:%/"],
    ["get", "--dns-servers=127.0.0.1:%", url],
    ["fetch", "--jsonl", "--concurrency=%"], ["fetch", "--jsonl", "--retry=%"],
    ["bench", "--warm", "-n%", url], ["bench", "--warm", "-n1", "--warmup=%", url],
    ["bench", "--warm", "-n1", "-c%", url],
    ["bench", "--warm", "-n1", "-p%", url], ["bench", "--warm", "-n1", "--seed=%", url],
    ["bench", "--warm", "-n9", "--alpha=%", url], ["bench", "--warm", "-n9", "--min-effect=%", url],
    ["bench", "--warm", "-n1", "--targets=ip", "-q1000", "--max-time=%", url],
    ["bench", "--warm", "-n1", "--slo=p95<%ms,errors<%%", url],
    ["bench", "--warm", "-n1", "--slo=max<=%s", url],
    ["bench", "-z%x", url], ["probe", "--interval=%"],
    ["cache", "sim", "--capacity=%", "-"], ["cache", "sim", "--capacity=%%", "-"],
    ["cache", "sim", "--capacity=%G", "-"],
    ["cache", "sim", "--key-column=%", "-"], ["cache", "sim", "--key-column=1", "--size-column=%", "-"],
  ]

  @Test("every command ends with an exit code for extreme numbers on its command line")
  func extremeNumbers() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // SIGALRM ends the process if a command hangs.
      alarm(300)
      let note = LastNote(path)
      let keys = try SigningFixture().keys
      for line in Self.lines {
        for numeral in ExtremeNumbers.numerals + ["", ".", "0.5", "nan", "inf", "0x7fffffffffffffff"] {
          let arguments = line.map { $0.replacing("%", with: numeral).replacing("@", with: keys) }
          note.write("\(arguments)")
          let run = await Run(arguments, client: BenchFixture.client(), input: "a 1\nb 2\n")
          #expect((0...127).contains(run.code), "\(arguments)")
        }
      }
      note.write("the end")
    }
    // Otherwise the note is the command line at which the child process trapped or was killed.
    #expect(note.text == "the end")
  }

  @Test("cache sim ends with an exit code for extreme numbers in a trace")
  func extremeTraces() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      for numeral in ExtremeNumbers.numerals {
        for trace in ["a %\nb %\na %\nc 1\n", "obj_id,size\n%,%\n2,%\n%,3\n"] {
          let input = trace.replacing("%", with: numeral)
          for capacity in ["1", "10%", "0.5", "9223372036854775807"] {
            note.write("\(capacity): \(input)")
            let run = await Run(["cache", "sim", "--capacity", capacity, "-"], input: input)
            #expect((0...127).contains(run.code))
          }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test(
    "a command answers a line of JSON with extreme numbers with one line",
    arguments: ["verify", "sign", "fetch"])
  func extremeLines(_ command: String) async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String, command = command as String] in
      alarm(300)
      let note = LastNote(path)
      let fixture = try SigningFixture()
      let arguments =
        command == "fetch"
        ? ["fetch", "--jsonl"] : [command, "--keys", fixture.keys, "--jsonl", "--allow-weak"]
      var lines = [SigningFixture.line, SigningFixture.signedLine]
      for (scheme, options) in [
        ("sigv4", #""region":"r","service":"s","presign_seconds":600"#),
        ("rfc9421", #""created":17,"expires":18"#),
        ("salted-md5", #""rounds":2"#),
      ] {
        let rest = #","key_id":"c1","scheme":"\#(scheme)","options":{\#(options)}"#
        lines.append(#"{"id":1,"method":"GET","url":"https://a.example/?X=1","now":1700000000\#(rest)}"#)
      }
      if command == "fetch" {
        lines = [#"{"id":1,"url":"https://a.example:8443/?x=1","headers":[["Age","1"]]}"#]
      }
      for line in lines {
        let text = ExtremeText(Array(line.utf8))
        for index in 0..<text.count {
          let input = String(decoding: text[index], as: UTF8.self)
          note.write(input)
          let run = await Run(arguments, input: input + "\n")
          #expect(run.output.split(separator: "\n").count == 1 && (0...127).contains(run.code), "\(input)")
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("iplist check ends with an exit code for extreme numbers in a list")
  func extremeLists() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let list = try TemporaryDirectory.make("lists") + "/iplist.json"
      // The addresses are the placeholders A and B. They have no digits, so `ExtremeText` does not change
      // them, and each variant of the list has valid addresses.
      let usual = """
        {"schema":1,"serial":7,"issued":"2026-01-02T03:04:05Z","expires":"2027-01-02T03:04:05Z",
        "refresh":{"url":"https://api.test/list.json","every":"6h"},
        "hosts":{"api.test":{"port":443,"health":{"path":"/x","expect":204},"endpoints":[{"ip":"A"},{"ip":"B","weight":5}]}}}
        """
      let text = ExtremeText(Array(usual.utf8))
      var random = SplitMix64(seed: 1)
      for index in 0..<(text.count + 200) {
        let bytes = index < text.count ? text[index] : text.drawn(using: &random)
        let input = String(decoding: bytes, as: UTF8.self).replacing("\"A\"", with: "\"192.0.2.1\"")
          .replacing("\"B\"", with: "\"192.0.2.2\"")
        note.write(input)
        try Files.write(input, to: list)
        for options in [["--json"], []] {
          let run = await Run(["iplist", "check"] + options + [list])
          #expect((0...127).contains(run.code), "\(input)")
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test(
    "a command ends with an exit code for extreme numbers in a saved run",
    arguments: ["compare", "merge", "iplist suggest"])
  func extremeRuns(_ command: String) async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String, command = command as String] in
      alarm(300)
      let note = LastNote(path)
      let folder = try TemporaryDirectory.make("runs")
      let (usual, changed) = ("\(folder)/usual.json", "\(folder)/changed.json")
      let saved = await BenchFixture.run(["--warm", "-n12", "--seed=1", "--json=\(usual)"])
      #expect(saved.code == 0)
      let text = ExtremeText(Array(try Files.read(usual).utf8))
      var random = SplitMix64(seed: 1)
      for _ in 0..<400 {
        let index = Int(random.below(UInt64(text.count)))
        let isDrawn = random.isOne(in: 4)
        let bytes = isDrawn ? text.drawn(using: &random) : text[index]
        try Files.write(String(decoding: bytes, as: UTF8.self), to: changed)
        note.write(isDrawn ? "drawn" : "number \(index)")
        let arguments =
          switch command {
          case "compare": ["compare", "--json", usual, changed]
          case "merge": ["merge", usual, changed]
          default: ["iplist", "suggest", "--from", changed]
          }
        let run = await Run(arguments)
        #expect((0...127).contains(run.code))
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
