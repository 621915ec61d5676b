import Testing

@testable import NetOptCore

/// Tests the reader of the field `Server-Timing`.
@Suite struct ServerTimingTests {
  private static func metrics(_ lines: String...) -> [ServerTiming] {
    ServerTiming.metrics(HeaderFields(lines.map { HeaderField("server-timing", $0) }))
  }

  @Test("names, durations and descriptions of several fields are read in order")
  func fields() {
    #expect(
      Self.metrics("db;dur=53.25, app;dur=47", "", "cache;desc=\"Cache, Read; \\\"x\\\"\";dur=0", "miss") == [
        ServerTiming("db", .microseconds(53_250)), ServerTiming("app", .milliseconds(47)),
        ServerTiming("cache", .zero, text: "Cache, Read; \"x\""), ServerTiming("miss"),
      ])
    #expect(ServerTiming.metrics([:]).isEmpty)
  }

  @Test(
    "unusual syntax is read as the specification says",
    arguments: [
      (" db \t;\t dur \t=\t 5 ", [ServerTiming("db", .milliseconds(5))]),
      ("db;DUR=5;Desc=a", [ServerTiming("db", .milliseconds(5), text: "a")]),
      ("db;dur=\"5\"", [ServerTiming("db", .milliseconds(5))]),
      // The first of several parameters counts, even without a value or with an invalid one.
      ("db;dur=1;dur=2;desc=a;desc=b", [ServerTiming("db", .milliseconds(1), text: "a")]),
      ("db;dur;dur=2", [ServerTiming("db")]), ("db;dur=;dur=2", [ServerTiming("db")]),
      ("db;dur=x;dur=2", [ServerTiming("db")]),
      // Unknown parameters and additional text are ignored.
      ("db;foo=bar;dur=1;;=3;baz", [ServerTiming("db", .milliseconds(1))]),
      ("db more;dur more=1;desc=\"a\" more", [ServerTiming("db", .milliseconds(1), text: "a")]),
      // Members without a name are skipped.
      (", ,;dur=1,\"a\";dur=2,(x),db", [ServerTiming("db")]),
      // Numbers that are no durations.
      (
        "a;dur=-1,b;dur=1e99,c;dur=nan,d;dur=inf,e;dur=x,f;dur=.,g;dur=.e5,h;dur=+,i;dur=e5,j;dur=1e3",
        "abcdefghi".map { ServerTiming(String($0)) } + [ServerTiming("j", .seconds(1))]
      ),
      // The text after a number is ignored.
      ("db;dur=12ms", [ServerTiming("db", .milliseconds(12))]),
      ("db;dur=\"47.2 ms\"", [ServerTiming("db", .microseconds(47_200))]),
      ("db;dur=47.2 ms", [ServerTiming("db", .microseconds(47_200))]),
      (
        "a;dur=1e,b;dur=1e+,c;dur=1.,d;dur=1.x,e;dur=1.e0",
        "abcde".map { ServerTiming("\($0)", .milliseconds(1)) }
      ),
      ("a;dur=.5,b;dur=+.5,c;dur=5e-1,d;dur=0.5.7", "abcd".map { ServerTiming("\($0)", .microseconds(500)) }),
      ("a;dur=+5,b;dur=\" 5\",c;dur=5-6", "abc".map { ServerTiming("\($0)", .milliseconds(5)) }),
      ("a;dur=0x10,b;dur=-0", "ab".map { ServerTiming("\($0)", .zero) }),
      // A quoted string without an end, and a backslash at the end.
      ("db;desc=\"a, b;dur=1", [ServerTiming("db", text: "a, b;dur=1")]),
      ("db;desc=\"a\\", [ServerTiming("db", text: "a\\")]),
      ("db;desc=\"\"", [ServerTiming("db")]),
    ])
  func tolerance(line: String, expected: [ServerTiming]) {
    #expect(Self.metrics(line) == expected)
  }

  @Test("metrics, names and descriptions are limited, and control characters are replaced")
  func limits() {
    let many = Self.metrics((0..<1000).map { "m\($0)" }.joined(separator: ","), "more")
    #expect(many.map(\.name) == (0..<ServerTiming.most).map { "m\($0)" })
    let long = Self.metrics(
      String(repeating: "n", count: 100_000) + ";desc=" + String(repeating: "d", count: 100_000))
    #expect(long.first?.name.count == ServerTiming.longestName + 1)
    #expect(long.first?.text?.count == ServerTiming.longestText + 1)
    #expect(Self.metrics("db;desc=\"a\u{1b}[31m\u{202e}\"").first?.text == "a\u{fffd}[31m\u{fffd}")
  }

  @Test("a list that is written as a field is read unchanged", arguments: UInt64(1)...200)
  func written(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let letters = Array("ab-Z.~0")
    let characters = Array("ab \",;=\\é日0'")
    func text(of alphabet: [Character], _ counts: ClosedRange<UInt64>) -> String {
      let count = counts.lowerBound + random.below(counts.upperBound - counts.lowerBound + 1)
      return String((0..<count).map { _ in alphabet[Int(random.below(UInt64(alphabet.count)))] })
    }
    let metrics = (0..<random.below(20)).map { _ in
      ServerTiming(
        text(of: letters, 1...20),
        random.below(3) == 0 ? nil : .microseconds(Int64(random.below(10_000_000_000))),
        text: random.below(3) == 0 ? nil : text(of: characters, 1...30))
    }
    let members = metrics.map { metric in
      let duration = metric.duration.map { ";dur=\(Double($0.microseconds) / 1000)" } ?? ""
      let escaped = metric.text.map { $0.map { "\"\\".contains($0) ? "\\\($0)" : "\($0)" }.joined() }
      let description = escaped.map { ";desc=\"\($0)\"" } ?? ""
      return metric.name + (random.below(2) == 0 ? duration + description : description + duration)
    }
    let split = members.isEmpty ? 0 : Int(random.below(UInt64(members.count)))
    let lines = [members[..<split], members[split...]].map { $0.joined(separator: ", ") }
    #expect(ServerTiming.metrics(HeaderFields(lines.map { HeaderField("Server-Timing", $0) })) == metrics)
  }

  @Test("any bytes are read without a crash, and give printable metrics only", arguments: UInt64(1)...200)
  func anyBytes(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let usual = Array("a;dur=1,desc=\"\\ \t\u{1b}".utf8)
    for _ in 0..<50 {
      let bytes = (0..<random.below(80)).map { _ in
        random.below(4) == 0
          ? UInt8(truncatingIfNeeded: random.next()) : usual[Int(random.below(UInt64(usual.count)))]
      }
      let metrics = Self.metrics(String(decoding: bytes, as: UTF8.self))
      #expect(metrics.count <= ServerTiming.most)
      for metric in metrics {
        #expect(HeaderFields.isToken(metric.name) && metric.text != "")
        #expect(metric.text?.unicodeScalars.contains(where: \.steersTerminal) != true)
        #expect((metric.duration ?? .zero) >= .zero)
      }
    }
  }
}
