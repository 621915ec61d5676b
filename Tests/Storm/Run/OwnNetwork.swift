import NetOptTestSupport
import TestTools

/// A network namespace for the whole process. In it, the storm can change the default route, and no other
/// process can connect to the servers.
enum OwnNetwork {
  /// The number of gateway addresses that `changeGateway` uses in turn.
  private static let gateways = 200

  /// Moves the process into a new network namespace with a default route. Must be called while the process
  /// has only one thread.
  ///
  /// - Returns: whether the process is in the new namespace with the route. This requires root.
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

  /// Changes the gateway of the default route, so that clients see another network.
  ///
  /// - Parameter number: the number of the change, which decides the address of the gateway.
  static func changeGateway(_ number: Int) async throws {
    try await ip("route replace default via 192.0.2.\(2 + number % gateways)")
  }

  /// Runs ip(8) with these arguments.
  private static func ip(_ arguments: String) async throws {
    let directory = try TemporaryDirectory.make("ip")
    try await ChildProcess.run("ip", arguments.split(separator: " ").map(String.init), in: directory)
  }
}
