import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting

/// The files in which rankings are kept, one for each network: `rankings/FINGERPRINT.json` in the state directory.
///
/// Each file is replaced as a whole, so that two programs never leave a broken one; what both know of one network is put
/// together under a lock on the directory (flock(2)), and of one host the later one counts. What is in the place of a file and is
/// no regular one is not read; a link, a pipe or the like goes when the file is written.
struct RankingStore: Sendable {
  /// The most networks that are kept; beyond it those go that were not seen for the longest time.
  static let mostNetworks = 16
  /// What another program left behind when it was killed is removed after this time, in seconds.
  private static let draftLifetime = 3600.0
  /// How long is waited for another program that writes there. A client that is shut down does not wait long for that.
  static let patience = Duration.seconds(1)

  /// The directory with the files.
  let directory: String

  /// - Parameter state: the state directory.
  init(_ state: String) { directory = "\(state)/rankings" }

  private func path(_ network: String) -> String { "\(directory)/\(network).json" }

  /// Reads what is kept of a network; `nil` when that is nothing.
  ///
  /// - Throws: `unreadableFile`; `invalidConfiguration` for a file that is none of netopt's.
  func load(_ network: String) throws(NetOptError) -> RouteHistory? {
    let path = path(network)
    let bytes = try FileBytes.readOwn(path, upTo: RouteHistory.maximumBytes, as: "the ranking", in: .list)
    guard let bytes else { return nil }
    do throws(RouteHistory.Fault) {
      return try RouteHistory(json: bytes, network: network)
    } catch {
      throw NetOptError(
        .invalidConfiguration, phase: .list,
        "the ranking \(path) is ignored: \(error.reason); it will be replaced, or remove it")
    }
  }

  /// Writes what is known of networks, and what is kept of them besides. Where one cannot be written the rest is not tried.
  ///
  /// - Parameter histories: by the networks' fingerprints; at least one.
  /// - Throws: `unwritableFile`, also when another program writes there for too long: that is waited for once.
  func save(_ histories: [String: RouteHistory], at date: Date) throws(NetOptError) {
    // The user's alone, like the files. That it failed shows when the directory is locked.
    try? FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let lock = try FileLock(
      directory, .folder, within: Self.patience, as: "the rankings in \(directory)", in: .list)
    defer { withExtendedLifetime(lock) {} }
    for (network, history) in histories { try save(history, network, at: date) }
    prune(keeping: Set(histories.keys), at: date)
  }

  private func save(_ history: RouteHistory, _ network: String, at date: Date) throws(NetOptError) {
    let old = (try? load(network))?.current(at: date)
    let merged = old.map(history.merged(with:)) ?? history
    if merged == old { return }
    let json = merged.json(network: network).bytes(indented: true) + [0x0a]
    try FileBytes.replace(path(network), with: json, mode: 0o600, isOwn: true, as: "the ranking", in: .list)
  }

  private func prune(keeping networks: Set<String>, at date: Date) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names where name.hasSuffix(".part") {
      if date.timeIntervalSince(changed(name)) > Self.draftLifetime { remove(name) }
    }
    let others = names.filter { name in
      name.hasSuffix(".json") && !networks.contains(String(name.dropLast(".json".count)))
    }
    let room = max(0, Self.mostNetworks - networks.count)
    guard others.count > room else { return }
    let ages = others.map { (name: $0, changed: changed($0)) }
    for file in ages.sorted(by: { $0.changed > $1.changed }).dropFirst(room) { remove(file.name) }
  }

  /// When a file was last written. Foundation's attributes would have the names of its owner and group looked up, over the network
  /// on some machines.
  private func changed(_ name: String) -> Date {
    var status = stat()
    guard lstat("\(directory)/\(name)", &status) == 0 else { return .distantPast }
    let time = status.st_mtim
    return Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
  }

  private func remove(_ name: String) { try? FileManager.default.removeItem(atPath: "\(directory)/\(name)") }
}
