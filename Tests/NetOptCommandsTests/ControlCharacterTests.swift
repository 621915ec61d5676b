import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

/// Tests that no text from a server, a file or an argument controls the terminal that shows the program's
/// output. The program prints no control characters except line feeds, and no characters that change the
/// direction of text. The bodies of responses are an exception: the program prints them unchanged.
@Suite struct ControlCharacterTests {
  /// The characters that the output must not contain: the control characters except NUL and line feed,
  /// some that change the direction of text, and the line separator.
  private static let controls: [Unicode.Scalar] =
    (0x01...0x1f).filter { $0 != 0x0a }.map { Unicode.Scalar($0) }
    + (0x7f...0x9f).map { Unicode.Scalar($0) }
    + ["\u{202e}", "\u{2066}", "\u{200f}", "\u{2028}"]

  private let program: InstalledProgram

  init() throws { program = try InstalledProgram() }

  /// Returns a text with three random characters of `controls`, each before text that looks like the rest
  /// of an escape sequence.
  private static func text(_ random: inout SplitMix64) -> String {
    var text = "a"
    for _ in 0..<3 {
      text.unicodeScalars.append(controls[Int(random.below(UInt64(controls.count)))])
      text += "[31mb"
    }
    return text
  }

  /// An IP list. The label of its endpoint and the name of an unknown member are this text.
  private func list(_ label: String) -> String {
    let endpoint: JSONValue = ["ip": "192.0.2.1", "label": .string(label), label: .string(label)]
    let list: JSONValue = ["schema": 1, "serial": 1, "hosts": ["a.test": ["endpoints": [endpoint]]]]
    return list.description
  }

  /// A key ring. The note of its key and the host in the scope of this key are this text.
  private func keys(_ text: String) -> String {
    let key: JSONValue = [
      "id": "a", "secret": "b", "schemes": ["netopt1"], "note": .string(text),
      "scopes": [["hosts": [.string(text)]]],
    ]
    return JSONValue.object([.init("schema", 1), .init("keys", [key])]).description
  }

  @Test("no command prints a control character of a server, a file or an argument")
  func noControlCharacters() async throws {
    // The bytes with which the server answers every request.
    let answer = Locked<[UInt8]>([])
    let server = try LoopbackServer(.raw { exchange in try exchange.write(answer.withLock(\.self)) })
    defer { server.stop() }
    let url = "http://\(server.endpoint)/"
    let saved = try await program.run(["bench", "-n1", "--targets", "dns", "--json=run.json", "--quiet", url])
      .output
    try #require(saved.contains("\"run_id\""))
    // The number of commands that succeeded.
    var answered = 0
    for seed: UInt64 in 1...60 {
      var random = SplitMix64(seed: seed)
      let text = Self.text(&random)
      let head = ["X-Odd: \(text)", "Location: /\(text)", "Content-Type: \(text)", "X-\(text): 1"][
        Int(random.below(4))]
      let status = ["200 \(text)", "302 Found", "200 OK", "\(text) OK"][Int(random.below(4))]
      answer.withLock { $0 = Array("HTTP/1.1 \(status)\r\n\(head)\r\nContent-Length: 0\r\n\r\n".utf8) }
      try Files.write(list(text), to: "\(program.directory)/list.json")
      try Files.write(saved.replacing("127.0.0.1", with: text), to: "\(program.directory)/saved.json")
      try Files.write(keys(text), to: "\(program.directory)/keys.json")
      chmod("\(program.directory)/keys.json", 0o600)
      let commands = [
        ["get", "-I", url], ["get", "-v", "-o/dev/null", url], ["get", "--json", url],
        ["get", "-v", url + text],
        ["get", "-H", "X: \(text)", "--max-time", text, url], ["fetch", "--jsonl"],
        ["bench", "-n1", "--targets", "dns", "--html", "run.html", url], ["iplist", "check", "list.json"],
        ["probe", text], ["probe", "--iplist", "list.json", text], [text], ["get", "--\(text)"],
        ["compare", "saved.json", "saved.json"], ["merge", "saved.json", "saved.json"],
        ["keys", "list", "--keys", "keys.json"], ["get", "--sign", text, "--keys", "keys.json", url],
        ["cache", "explain", "-H", "X: \(text)", url],
      ]
      let arguments = commands[Int(random.below(UInt64(commands.count)))]
      let line: JSONValue = ["id": .string(text), "url": .string(url), "method": .string(text)]
      let run = try await program.run(arguments, lines: line.description + "\n")
      if run.status == 0 { answered += 1 }
      let found = run.output.unicodeScalars.filter { $0 != "\n" && Self.controls.contains($0) }
      #expect(found.isEmpty, "seed \(seed): \(arguments) \(status) \(head): \(run.output.debugDescription)")
    }
    #expect(answered > 5)
  }
}
