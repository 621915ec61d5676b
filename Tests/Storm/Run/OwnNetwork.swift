import NetOptTestSupport
import TestTools

/// A network namespace for the whole process, in which the default route can change and no other process
/// reaches the servers.
enum OwnNetwork {
  private static let gateways = 200

  /// Moves the process into a new network namespace with a default route. Must be called before the process
  /// has a second thread.
  ///
  /// - Returns: whether the process has the namespace; this requires root.
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

  /// Changes the default route, so that the kernel reports another network.
  static func changeGateway(_ number: Int) async throws {
    try await ip("route replace default via 192.0.2.\(2 + number % gateways)")
  }

  private static func ip(_ arguments: String) async throws {
    let directory = try TemporaryDirectory.make("ip")
    try await ChildProcess.run("ip", arguments.split(separator: " ").map(String.init), in: directory)
  }
}
