import FoundationEssentials
import Glibc
package import NetOptCore
import NetOptCrypto
import NetOptLocking

/// A seed pack: responses that are shipped with a service. It is a directory with `index.json`
/// (docs/schemas/seed-pack.schema.json) and a file for each body. A seed pack is read-only, and no
/// `CacheLimits` apply to it. A stored entry that is newer than the seed takes precedence.
///
/// The pack reads the file of a body when the resource is requested for the first time. It compares the file
/// with the SHA-256 in the index, and then keeps the body in memory.
package final class SeedPack: Sendable {
  /// Checks that a trusted key has signed the index. Throws when the pack must not be used.
  ///
  /// - Parameters:
  ///   - index: the bytes of `index.json`.
  ///   - signature: the bytes of `index.json.minisig`; `nil` when there is no such file.
  package typealias SignatureCheck =
    @Sendable (_ index: [UInt8], _ signature: [UInt8]?) throws(NetOptError) -> Void

  /// The content of `index.json`.
  private struct Index: Decodable {
    /// The response for one key. `key` and `parameters` are the two parts of `CacheKey.text`. `version` is
    /// the version of the resource, for `versioned` mode. `file` is the path of the body inside the
    /// directory, and `sha256` is the SHA-256 of this file in hexadecimal digits. `fields` are the header
    /// fields, each a pair of a name and a value. A missing `status` is 200.
    struct Resource: Decodable {
      let key: String
      let parameters: String?
      let version: Int64?
      let file: String
      let sha256: String
      let status: Int?
      let fields: [[String]]?
    }
    /// The version of the format, which must be 1.
    let schema: Int
    /// When the pack was issued, in seconds since 1970.
    let issued: Int64
    let resources: [Resource]
  }

  /// The state of a resource.
  private enum Body: Sendable {
    /// The file was not read yet.
    case unread
    /// The file was read and matches the index.
    case entry(CacheEntry)
    /// The file is missing, unreadable or too large, or does not match the index.
    case unusable

    /// The entry, with a key that may have another partition; `nil` without an entry.
    func entry(for key: CacheKey) -> CacheEntry? {
      guard case .entry(let entry) = self else { return nil }
      return entry.key == key ? entry : entry.replacing(key: key)
    }
  }

  /// The directory of the pack.
  package let directory: String
  /// The number of resources.
  package var count: Int { resources.count }
  /// The resources by `CacheKey.text`.
  private let resources: [String: Index.Resource]
  /// When the pack was issued, in milliseconds since 1970.
  private let issued: Int64
  /// The states of the resources by `CacheKey.text`. A missing state is `unread`.
  private let bodies = Locked<[String: Body]>([:])
  /// Receives an error for each file that cannot be used.
  private let warn: @Sendable (NetOptError) -> Void
  /// The thread that reads the files of bodies.
  private let thread = DiskThread()

  /// The maximum size of the index in bytes.
  private static let mostIndexBytes = 16 << 20
  /// The maximum size of a body in bytes.
  private static let mostBodyBytes = 64 << 20
  /// The valid dates, in seconds since 1970: up to the end of the year 9999.
  private static let dates: ClosedRange<Int64> = 0...253_402_300_799

  /// Reads a pack's index.
  ///
  /// - Parameters:
  ///   - directory: the directory of the pack.
  ///   - check: checks the signature of the index.
  ///   - warn: receives an error when the file of a body is missing, unreadable or too large, or does not
  ///     match the index. The pack then acts as if it did not have the resource.
  /// - Throws: `unreadableFile` when the index cannot be read or is invalid; errors of `check`.
  package init(
    _ directory: String, check: SignatureCheck, warn: @escaping @Sendable (NetOptError) -> Void
  ) throws(NetOptError) {
    let path = directory + "/index.json"
    let bytes = try FileBytes.read(path, upTo: Self.mostIndexBytes, as: "the seed pack's index", in: .cache)
    let hasSignature = access(path + ".minisig", F_OK) == 0
    let signature =
      hasSignature
      ? try FileBytes.read(path + ".minisig", upTo: 4096, as: "the seed pack's signature", in: .cache) : nil
    try check(bytes, signature)
    if let fault = SlowText.fault(ofJSON: bytes) { throw Self.fault(path, fault) }
    let index: Index
    do { index = try JSONDecoder().decode(Index.self, from: Data(bytes)) } catch {
      let reason = (error as? DecodingError)?.reason ?? "it is not JSON"
      throw Self.fault(
        path,
        "it does not follow docs/schemas/seed-pack.schema.json: \(reason)"
      )
    }
    guard index.schema == 1 else { throw Self.fault(path, "its schema is \(index.schema), not 1") }
    guard Self.dates.contains(index.issued) else {
      throw Self.fault(path, "$.issued is not a date from 1970 to 9999 in seconds: \(index.issued)")
    }
    var resources: [String: Index.Resource] = [:]
    for (number, resource) in index.resources.enumerated() {
      let jsonPath = "$.resources[\(number)]"
      guard Self.isInside(resource.file) else {
        throw Self.fault(path, "\(jsonPath).file leads out of the folder: \"\(resource.file)\"")
      }
      guard resource.fields?.allSatisfy({ $0.count == 2 }) ?? true else {
        throw Self.fault(path, "\(jsonPath).fields must have only pairs of a name and a value")
      }
      guard resources.updateValue(resource, forKey: Self.text(of: resource)) == nil else {
        throw Self.fault(path, "\(jsonPath).key occurs twice: \"\(resource.key)\"")
      }
    }
    self.directory = directory
    self.resources = resources
    issued = index.issued * 1000
    self.warn = warn
  }

  /// The entry of a key; `nil` when the pack does not have the key, or cannot use its file. A pack answers
  /// for a key in every partition. It reads files on its own thread.
  package func entry(for key: CacheKey) async -> CacheEntry? {
    guard let resource = resources[key.text] else { return nil }
    let known = body(of: key)
    if case .unread = known { return await thread.run { [self] in readOnce(resource, key) } ?? nil }
    return known.entry(for: key)
  }

  private func body(of key: CacheKey) -> Body { bodies.withLock { $0[key.text] ?? .unread } }

  /// Whether a seed is newer than a stored entry. If both have a version, the versions decide. Otherwise the
  /// times decide at which the responses were received; for a seed, this is the time at which its pack was
  /// issued.
  static func isNewer(_ seed: CacheEntry, than stored: CacheEntry) -> Bool {
    if let ours = seed.resourceVersion, let theirs = stored.resourceVersion { return ours > theirs }
    return seed.received > stored.received
  }

  /// Reads and checks the file of a resource, unless an earlier call has. Several calls may wait for the thread
  /// at once. Called on the thread.
  private func readOnce(_ resource: Index.Resource, _ key: CacheKey) -> CacheEntry? {
    let known = body(of: key)
    if case .unread = known { return read(resource, key) }
    return known.entry(for: key)
  }

  /// Reads and checks the file of a resource, and sets the state of the resource.
  private func read(_ resource: Index.Resource, _ key: CacheKey) -> CacheEntry? {
    do throws(NetOptError) {
      let path = "\(directory)/\(resource.file)"
      let bytes = try FileBytes.read(path, upTo: Self.mostBodyBytes, as: "the seed pack's", in: .cache)
      guard bytes.count <= Self.mostBodyBytes else { throw Self.fault(path, "it has more than 64 MiB") }
      let digest = try? Digest.of(bytes, .sha256)
      guard digest.map(Hex.text) == resource.sha256.loweredASCII else {
        throw Self.fault(path, "its SHA-256 differs from the one in the index")
      }
      let fields = HeaderFields((resource.fields ?? []).map { HeaderField($0[0], $0[1]) })
      let entry = CacheEntry(
        key: key, status: resource.status ?? 200, fields: fields, body: bytes, requested: issued,
        received: issued,
        resourceVersion: resource.version, fetchMicroseconds: 0)
      bodies.withLock { $0[key.text] = .entry(entry) }
      return entry
    } catch {
      bodies.withLock { $0[key.text] = .unusable }
      warn(error)
      return nil
    }
  }

  /// The text of the resource's key, as in `CacheKey.text`.
  private static func text(of resource: Index.Resource) -> String {
    resource.key + "\0" + (resource.parameters ?? "")
  }

  /// Whether a path in the index names a file inside the directory of the pack.
  private static func isInside(_ path: String) -> Bool {
    !path.isEmpty && !path.hasPrefix("/") && !path.utf8.contains(0)
      && path.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
        $0 != ".." && $0 != "." && !$0.isEmpty
      }
  }

  private static func fault(_ path: String, _ reason: String) -> NetOptError {
    NetOptError(.unreadableFile, phase: .cache, "the seed pack's \(path) cannot be used: \(reason)")
  }
}
