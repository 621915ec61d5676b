import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptEngine
import NetOptRouting
import Synchronization

/// Keeps a ranking (`RouteHistory`) for each network that this machine was in. Memory keeps the rankings
/// while the client lives. The files of the `RankingStore`, if there is one, keep them for later clients.
final class RankingMemory: Sendable {
  /// The interval between writes of the ranking while the client is in use.
  private static let saveInterval = Duration.seconds(300)

  /// The networks and their rankings. The lock of `state` protects it.
  private struct State {
    /// The network that the machine is in now.
    var network: NetworkFingerprint
    /// The rankings of networks that the machine has left, by network fingerprint. A successful write to the
    /// files removes them from memory.
    var left: [String: RouteHistory] = [:]
    /// When `saveIfOld` last decided to write, even if the write failed. At first, when this object was made.
    var lastSaved: MonotonicInstant
  }

  /// The owner of the planner, which learns the ranking of the current network.
  private let router: Router
  /// The ranking files; `nil` when the configuration keeps no ranking, or when there is no state directory.
  private let store: RankingStore?
  private let timeSource: any TimeSource
  /// Passes an error of the store to the configuration's warning handler.
  private let warn: @Sendable (NetOptError) -> Void
  /// Whether `warn` was called. Only the first error of the store is reported.
  private let hasWarned = Atomic(false)
  private let state: Locked<State>

  init(
    _ router: Router, _ configuration: ClientConfiguration, network: NetworkFingerprint,
    _ timeSource: any TimeSource
  ) {
    self.router = router
    self.timeSource = timeSource
    let directory =
      switch configuration.rankingHistory {
      case .stateDirectory: StateDirectory.path(ProcessEnvironment.variables)
      case .directory(let path): Optional(path)
      case .none: String?.none
      }
    store = directory.map { RankingStore($0) }
    warn = configuration.warningHandler ?? { _ in }
    state = Locked(State(network: network, lastSaved: timeSource.now()))
  }

  /// Restores the ranking of the current network: the ranking in memory, otherwise the ranking in the file.
  /// Ignores hosts whose ranking is older than a day. Restores nothing when the client has no list.
  ///
  /// - Returns: the hosts with a restored ranking.
  func restore() -> Set<String> {
    guard router.withPlanner({ planner, _ in planner.list != nil }) else { return [] }
    let (network, left) = state.withLock { ($0.network.description, $0.left[$0.network.description]) }
    guard let history = (left ?? load(network))?.current(at: Date()) else { return [] }
    return state.withLock { state in
      // The network may have changed during the read of the file.
      guard state.network.description == network else { return [] }
      return router.withPlanner { planner, now in planner.adopt(history, at: now, date: Date()) }
    }
  }

  /// Removes the ranking of the old network from the router when the machine has changed to another network.
  /// Memory keeps that ranking in case the machine returns. If memory has a ranking of the new network, the
  /// router uses it at once.
  ///
  /// - Returns: the hosts for which the router now uses a ranking from memory. `nil` when memory has no
  ///   ranking of the new network; the caller must then call `restore`, which reads the file.
  func networkChanged(to network: NetworkFingerprint) -> Set<String>? {
    let date = Date()
    // Under the lock, like every step that gives a ranking to a network or changes the current network.
    return state.withLock { state in
      let kept = state.left[network.description]
      let (left, known) = router.beginNetwork(at: date, knowing: kept?.current(at: date))
      // Hosts without a measurement since the machine returned keep their older ranking. An empty ranking is
      // not kept: it would hide the ranking in the file.
      let before = state.left[state.network.description]?.current(at: date)
      let learned = before.map(left.merged(with:)) ?? left
      state.left[state.network.description] = learned.hosts.isEmpty ? nil : learned
      state.network = network
      // With more than `mostNetworks` rankings, drops them all: a laptop that changed the network that often
      // is unlikely to return.
      if state.left.count > RankingStore.mostNetworks { state.left = [:] }
      return kept == nil ? nil : known
    }
  }

  /// Writes the rankings if the last call that wrote was at least five minutes ago.
  func saveIfOld() {
    let now = timeSource.now()
    let isOld = state.withLock { state in
      guard now - state.lastSaved >= Self.saveInterval else { return false }
      state.lastSaved = now
      return true
    }
    if isOld { save() }
  }

  /// Writes the ranking of the current network and the rankings of the networks that the machine has left.
  /// Writes nothing when the client has not planned any request with its list.
  func save() {
    guard let store else { return }
    let date = Date()
    let histories = state.withLock { state -> [String: RouteHistory] in
      let present = router.withPlanner { planner, now in
        planner.isUsed ? planner.history(at: now, date: date) : nil
      }
      guard let present else { return [:] }
      return state.left.merging([state.network.description: present]) { $1 }
    }
    let known = histories.filter { !$0.value.hosts.isEmpty }
    if known.isEmpty { return }
    do throws(NetOptError) {
      try store.save(known, at: date)
      // Reached only after a successful write: memory keeps rankings that could not be written.
      state.withLock { state in
        for network in known.keys { state.left.removeValue(forKey: network) }
      }
    } catch {
      warnOnce(error)
    }
  }

  /// Reads the ranking of a network from its file; `nil` when there is none, or when the file is unreadable.
  private func load(_ network: String) -> RouteHistory? {
    do throws(NetOptError) {
      return try store?.load(network)
    } catch {
      warnOnce(error)
      return nil
    }
  }

  /// Reports the first error, and ignores all later ones.
  private func warnOnce(_ error: NetOptError) {
    if !hasWarned.exchange(true, ordering: .relaxed) { warn(error) }
  }
}
