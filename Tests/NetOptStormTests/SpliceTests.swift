import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptStorm

/// Tests of the splice, the storm's TCP proxy, which spreads connections over servers and injects faults. The
/// body of a response shows which server sent it.
@Suite struct SpliceTests {
  /// Starts a server that answers every request with this text.
  private static func server(_ text: String) throws -> LoopbackServer {
    try LoopbackServer(.raw { exchange in try exchange.respond(200, text: text) })
  }

  /// Starts a splice that passes connections on to the servers in turn.
  ///
  /// - Parameter fault: the fault of each connection, by the number of the connection from 0; `nil` for none.
  /// - Returns: the splice, and the endpoint on which it listens.
  private static func splice(
    _ servers: [LoopbackServer], fault: @escaping @Sendable (Int) -> SpliceFault? = { _ in nil }
  ) throws -> (Splice, IPEndpoint) {
    let address = IPAddress.freshLoopback(1)[0]
    let endpoint = IPEndpoint(address, port: try FreePort.find(on: [address]))
    return (try Splice([Splice.Frontend(endpoint, ["": servers.map(\.endpoint)])], fault: fault), endpoint)
  }

  /// Sends a request over a new connection with curl(1). Returns the body of the response, or `failed` if
  /// curl reports an error.
  private func ask(_ endpoint: IPEndpoint) async throws -> String {
    let directory = try TemporaryDirectory.make("splice")
    let child = try ChildProcess("curl", ["-s", "--max-time", "20", "http://\(endpoint)/"], in: directory)
    try await wait(for: "curl to end") { child.exitStatus() != nil }
    return child.exitStatus() == 0 ? TextFile.read(child.output) : "failed"
  }

  @Test("successive connections go to the servers of a name in turn")
  func serversTakeTurns() async throws {
    let servers = try [Self.server("first"), Self.server("second")]
    let (splice, endpoint) = try Self.splice(servers)
    var answers: [String] = []
    for _ in 0..<4 { answers.append(try await ask(endpoint)) }
    #expect(answers == ["first", "second", "first", "second"])
    splice.stop()
    #expect(splice.figures.connections == 4)
    #expect(splice.figures.open == 0)
    servers.forEach { $0.stop() }
  }

  @Test("the splice breaks only the connections with a fault, and none while faults are off")
  func faults() async throws {
    let server = try Self.server("whole")
    let faults = [
      SpliceFault(.reset, at: .serverBytes(5)), nil, SpliceFault(.close, at: .clientBytes(0)), nil,
    ]
    let (splice, endpoint) = try Self.splice([server]) { faults[$0 % faults.count] }
    var answers: [String] = []
    for _ in 0..<4 { answers.append(try await ask(endpoint)) }
    #expect(answers == ["failed", "whole", "failed", "whole"])
    splice.setFaults(false)
    #expect(try await ask(endpoint) == "whole")
    #expect(splice.figures.resets == 1)
    #expect(splice.figures.closes == 1)
    splice.stop()
    server.stop()
  }

  @Test("a stalled connection resumes")
  func stall() async throws {
    let server = try Self.server("whole")
    let (splice, endpoint) = try Self.splice([server]) { _ in
      SpliceFault(.stall(.milliseconds(30)), at: .serverBytes(1))
    }
    #expect(try await ask(endpoint) == "whole")
    #expect(splice.figures.stalls == 1)
    splice.stop()
    server.stop()
  }

  @Test("the server name is read from a complete ClientHello, and damaged bytes do no harm")
  func clientHello() {
    let hello = Self.hello("old.test")
    for count in 0..<hello.count { #expect(ClientHello.read(Array(hello.prefix(count))) == .incomplete) }
    #expect(ClientHello.read(hello) == .complete("old.test"))
    #expect(ClientHello.read(hello + [1, 2, 3]) == .complete("old.test"))
    #expect(ClientHello.read(Self.hello(nil)) == .complete(nil))
    #expect(ClientHello.read(Array("GET / HTTP/1.1\r\n\r\n".utf8)) == .complete(nil))
    // Lengths that reach beyond the end must not crash the reader.
    for index in 5..<hello.count {
      var broken = hello
      broken[index] = 255
      _ = ClientHello.read(broken)
    }
  }

  /// A ClientHello with few parts (RFC 8446, section 4.1.2). It has a padding extension, which the reader
  /// must skip, and then the server name; `nil` leaves the name out.
  private static func hello(_ name: String?) -> [UInt8] {
    /// Puts the number of the bytes before them, as an integer of `width` bytes.
    func counted(_ bytes: [UInt8], _ width: Int) -> [UInt8] {
      (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
    }
    let padding: [UInt8] = [0, 21] + counted([0, 0, 0], 2)
    let server = name.map { [0, 0] + counted(counted([0] + counted(Array($0.utf8), 2), 2), 2) } ?? []
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + counted([], 1) + counted([0x13, 1], 2) + counted([0], 1)
      + counted(padding + server, 2)
    return [22, 3, 1] + counted([1] + counted(body, 3), 2)
  }
}
