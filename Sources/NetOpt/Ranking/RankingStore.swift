import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting

/// The ranking files, one for each network: `rankings/FINGERPRINT.json` in the state directory.
///
/// The store replaces each file as a whole, so that two programs never leave a broken file. Under a lock on
/// the directory (flock(2)), it merges each new ranking with the ranking in the file. If both rank a host,
/// the new ranking of this host replaces the one in the file. The store does not read a link, a pipe or
/// anything else that is not a regular file. When it writes the ranking, it replaces such a file with a
/// regular one.
struct RankingStore: Sendable {
  /// The maximum number of ranking files, one for each network. When there are more, the store removes the
  /// files whose last write is the longest ago.
  static let mostNetworks = 16
  /// The age in seconds after which the store removes a temporary file (`.part`). A program that is killed
  /// while it writes a ranking leaves such a file.
  private static let draftLifetime = 3600.0
  /// How long the store waits for the lock while another program holds it. The time is short, because a
  /// client that shuts down waits for the store.
  static let lockTimeout = Duration.seconds(1)

  /// The directory with the files.
  let directory: String

  /// - Parameter state: the state directory.
  init(_ state: String) { directory = "\(state)/rankings" }

  /// The path of the ranking file of a network, which its fingerprint identifies.
  private func path(_ network: String) -> String { "\(directory)/\(network).json" }

  /// Reads the ranking of a network; `nil` when there is no file for the network.
  ///
  /// - Throws: `unreadableFile`; `invalidConfiguration` for a file that is not a ranking file of netopt's.
  func load(_ network: String) throws(NetOptError) -> RouteHistory? {
    let path = path(network)
    let bytes = try FileBytes.readOwn(path, upTo: RouteHistory.maximumBytes, as: "the ranking", in: .list)
    guard let bytes else { return nil }
    do throws(RouteHistory.Fault) {
      return try RouteHistory(json: bytes, network: network)
    } catch {
      throw NetOptError(
        .invalidConfiguration, phase: .list,
        "the ranking \(path) is ignored: \(error.reason); netopt will replace it, or remove it")
    }
  }

  /// Merges rankings with those in their files, and writes the files. Stops at the first file that it cannot
  /// write.
  ///
  /// - Parameter histories: the rankings by network fingerprint; at least one.
  /// - Throws: `unwritableFile`, also when another program holds the lock for longer than `lockTimeout`. The
  ///   store waits for the lock once, not once per file.
  func save(_ histories: [String: RouteHistory], at date: Date) throws(NetOptError) {
    // Only this user can access the directory, as for the files. If the directory cannot be created, taking
    // the lock on it throws the error.
    try? FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let lock = try FileLock(
      directory, .folder, within: Self.lockTimeout, as: "the rankings in \(directory)", in: .list)
    defer { withExtendedLifetime(lock) {} }
    for (network, history) in histories { try save(history, network, at: date) }
    prune(keeping: Set(histories.keys), at: date)
  }

  /// Writes a ranking, merged with the ranking in the file. Writes nothing when the file would not change.
  private func save(_ history: RouteHistory, _ network: String, at date: Date) throws(NetOptError) {
    let old = (try? load(network))?.current(at: date)
    let merged = old.map(history.merged(with:)) ?? history
    if merged == old { return }
    let json = merged.json(network: network).bytes(indented: true) + [0x0a]
    try FileBytes.replace(
      path(network), with: json, mode: 0o600, isOwnedByNetopt: true, as: "the ranking", in: .list)
  }

  /// Removes old temporary files, and the oldest ranking files beyond `mostNetworks`.
  ///
  /// - Parameter networks: the networks whose files were just written. Their files stay.
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

  /// The time of the last write to a file; `distantPast` when it is unknown. lstat(2) gives it without the
  /// look-up of the owner's and group's names that Foundation's file attributes need. On some machines that
  /// look-up goes over the network.
  private func changed(_ name: String) -> Date {
    var status = stat()
    guard lstat("\(directory)/\(name)", &status) == 0 else { return .distantPast }
    let time = status.st_mtim
    return Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
  }

  /// Removes a file from the directory, by its name. Ignores an error.
  private func remove(_ name: String) { try? FileManager.default.removeItem(atPath: "\(directory)/\(name)") }
}
