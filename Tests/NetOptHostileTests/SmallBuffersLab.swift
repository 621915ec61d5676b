import NetOpt
import NetOptTestSupport
import TestTools
import Testing

/// A server and a client in a network of their own, whose sockets have small buffers (tcp(7)). libcurl often
/// cannot write there.
struct SmallBuffersLab {
  let namespace: NetworkNamespace
  let server: HostileServer
  let client: NetOptClient

  /// - Parameters:
  ///   - send: the size of the send buffers in bytes.
  ///   - receive: the size of the receive buffers in bytes.
  init(send: Int, receive: Int) async throws {
    namespace = try NetworkNamespace()
    try namespace.run {
      try TextFile.write("4096 \(send) \(send)", to: "/proc/sys/net/ipv4/tcp_wmem")
      try TextFile.write("4096 \(receive) \(receive)", to: "/proc/sys/net/ipv4/tcp_rmem")
    }
    server = try await HostileServer(in: namespace)
    client = try namespace.run { [server] in try NetOptClient(server.clientConfiguration) }
  }

  /// Runs a test, and then ends the client and the namespace, in this order, also when the test throws.
  /// Until the client has ended, its event loop is a thread in the namespace.
  static func with(send: Int, receive: Int, _ test: (SmallBuffersLab) async throws -> Void) async throws {
    let lab = try await SmallBuffersLab(send: send, receive: receive)
    do { try await test(lab) } catch {
      await lab.end()
      throw error
    }
    #expect(lab.server.newFaults().isEmpty)
    await lab.end()
  }

  /// Waits until the client's socket holds more than the server's receive buffer takes, so the server has
  /// stopped reading.
  ///
  /// - Parameter least: the number of bytes that the socket holds then.
  func waitForFullSocket(holding least: Int) async throws {
    // Lines of /proc/net/tcp: the number, both addresses and ports, the state, the bytes in both queues
    // (Documentation/networking/proc_net_tcp.rst of Linux). The server's port is the remote one.
    let port = String(server.secure.port, radix: 16, uppercase: true)
    try await wait(for: "a full socket") {
      let lines = try namespace.run { TextFile.read("/proc/thread-self/net/tcp") }.split(separator: "\n")
      return lines.contains { line in
        let fields = line.split(separator: " ")
        guard fields.count > 4, fields[2].hasSuffix(":" + port) else { return false }
        return fields[4].split(separator: ":").first.flatMap { Int($0, radix: 16) }.map { $0 >= least }
          ?? false
      }
    }
  }

  private func end() async {
    await client.shutdown()
    namespace.end()
  }
}
