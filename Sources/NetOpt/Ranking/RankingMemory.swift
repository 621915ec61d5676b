import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptEngine
import NetOptRouting
import Synchronization

/// Keeps a ranking (`RouteHistory`) for each network that this machine was in. This object holds the rankings
/// in memory as long as the client lives. The files of the `RankingStore`, if there is one, keep them for
/// later clients.
final class RankingMemory: Sendable {
  /// The minimum time between two writes of `saveIfOld`, which writes while the client is in use.
  private static let saveInterval = Duration.seconds(300)

  /// The current network, and the rankings of other networks.
  private struct State {
    /// The network that the machine is in now.
    var network: NetworkFingerprint
    /// The rankings of networks that the machine has left, by network fingerprint. A successful write to the
    /// files removes them from memory.
    var left: [String: RouteHistory] = [:]
    /// When `saveIfOld` last began to write, even if the write failed; until then, when this object was made.
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

  /// Gives the planner the ranking of the current network that is in memory, or otherwise in the file.
  /// Ignores hosts whose ranking is older than a day. Does nothing when the client has no list.
  ///
  /// - Returns: the names of the hosts whose ranking the planner now knows.
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

  /// Moves the ranking of the old network from the planner to memory, because this machine has joined another
  /// network. Memory keeps that ranking in case the machine returns. If memory has a ranking of the new
  /// network, the planner gets it at once.
  ///
  /// - Returns: the names of the hosts for which the planner now uses a ranking from memory. `nil` when
  ///   memory has no ranking of the new network; the caller must then call `restore`, which reads the file.
  func networkChanged(to network: NetworkFingerprint) -> Set<String>? {
    let date = Date()
    // The lock is held during the whole change, so that no other function assigns a ranking to the wrong
    // network meanwhile.
    return state.withLock { state in
      let kept = state.left[network.description]
      let (left, known) = router.beginNetwork(at: date, knowing: kept?.current(at: date))
      // `before` is the ranking from an earlier stay in the old network. It stays valid for the hosts that
      // were not measured during the last stay. An empty ranking is not kept: it would hide the ranking in
      // the file.
      let before = state.left[state.network.description]?.current(at: date)
      let learned = before.map(left.merged(with:)) ?? left
      state.left[state.network.description] = learned.hosts.isEmpty ? nil : learned
      state.network = network
      // With more than `mostNetworks` rankings, all of them are dropped: a laptop that changed the network
      // that often is unlikely to return to one of these networks.
      if state.left.count > RankingStore.mostNetworks { state.left = [:] }
      return kept == nil ? nil : known
    }
  }

  /// Calls `save` if five minutes (`saveInterval`) have passed since `lastSaved`.
  func saveIfOld() {
    let now = timeSource.now()
    let isOld = state.withLock { state in
      guard now - state.lastSaved >= Self.saveInterval else { return false }
      state.lastSaved = now
      return true
    }
    if isOld { save() }
  }

  /// Writes the ranking of the current network and the rankings of the networks that this machine has left to
  /// the files. Writes nothing when the client has not planned any request with its list.
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

  /// Passes the first error to `warn`, and ignores all later errors.
  private func warnOnce(_ error: NetOptError) {
    if !hasWarned.exchange(true, ordering: .relaxed) { warn(error) }
  }
}
