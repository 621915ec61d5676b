import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite("A program on URLSession", .serialized) struct ProgramTests {
  @Test("prints the same with and without netopt")
  func sameOutput() async throws {
    let server = try ProgramServer.start()
    defer { server.stop() }
    let certificate = try await TestCertificates.certificate(.selfSigned, for: ["127.0.0.1"])
    let secure = try await NginxOrigin.start([.init(.loopback, .certificate(certificate))])
    defer { secure.stop() }
    let arguments = [
      "http://\(server.endpoint)/", "https://\(secure.endpoints[0])/",
      "http://127.0.0.1:\(try FreePort.find(on: [.loopback]))/",
    ]
    let foundation = try await run(arguments, netOpt: false)
    let requests = server.requests.count
    let netOpt = try await run(arguments, netOpt: true)
    #expect(foundation.count > 65, "\(foundation)")
    #expect(netOpt.count == foundation.count)
    for (one, other) in zip(foundation, netOpt) { #expect(one == other) }
    // The second run went over netopt, and sent as many requests.
    let agents = server.requests.dropFirst(requests).compactMap { $0.fields["User-Agent"] }
    #expect(agents.allSatisfy { $0.hasPrefix("netopt") } && !agents.isEmpty, "\(Set(agents))")
  }

  /// Runs the program, and returns the lines that it printed.
  private func run(_ arguments: [String], netOpt: Bool) async throws -> [String] {
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = FileBytes.folder(of: tests) + "/urlsession-program"
    let directory = try TemporaryDirectory.make("urlsession")
    let child = try ChildProcess(
      "/usr/bin/env", ["NETOPT=\(netOpt ? 1 : 0)", program] + arguments, in: directory)
    defer { child.stop() }
    do {
      try await wait(for: "the program to end", within: .seconds(60)) { child.exitStatus() != nil }
    } catch {
      throw TestSupportError("\(error): \(TextFile.read(child.output))")
    }
    #expect(child.exitStatus() == 0, "\(TextFile.read(child.output))")
    return TextFile.read(child.output).split(separator: "\n").map(String.init)
      .filter { $0.hasPrefix("| ") }
  }
}
