import NetOptTestSupport
import TestTools

/// A network namespace for the whole process, so that its default route can change and nobody else meets its servers.
enum OwnNetwork {
  private static let gateways = 200

  /// Brings the process into a network of its own with a default route. To be called before there is a second thread.
  ///
  /// - Returns: whether that was possible: it takes root.
  static func enter() async -> Bool {
    guard (try? NetworkNamespace.enterNew()) != nil else { return false }
    do {
      for command in [
        "link set lo up", "link add storm0 type veth peer name storm0-end", "link set storm0-end up",
        "link set storm0 up", "addr add 192.0.2.250/24 dev storm0", "route add default via 192.0.2.1",
      ] { try await ip(command) }
      return true
    } catch {
      return false
    }
  }

  /// Makes the kernel tell of another network.
  static func changeGateway(_ number: Int) async throws {
    try await ip("route replace default via 192.0.2.\(2 + number % gateways)")
  }

  private static func ip(_ arguments: String) async throws {
    let directory = try TemporaryDirectory.make("ip")
    try await ChildProcess.run("ip", arguments.split(separator: " ").map(String.init), in: directory)
  }
}
