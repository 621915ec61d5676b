public import NetOptCore
package import NetOptCrypto

/// The keys of signers and verifiers, by id. Safe to use from any thread.
public struct KeyRing: Sendable {
  /// Where lookups find keys: in a table by id, or by calling the closure from which the ring was made.
  private enum Source: Sendable {
    case keys([String: SigningKey])
    case closure(@Sendable (String) -> SigningKey?)
  }

  private let source: Source
  /// The keys in the order in which the file or the caller gave them. Empty for a ring that calls a closure.
  public let keys: [SigningKey]

  /// Makes a ring of keys. If two keys have the same id, a lookup returns the later one.
  public init(_ keys: [SigningKey]) {
    self.keys = keys
    source = .keys(Dictionary(keys.map { ($0.id, $0) }) { $1 })
  }

  /// Makes a ring that calls a closure for each lookup. The ring itself keeps no keys.
  ///
  /// - Parameter find: takes a key id and returns the key. In a verifier, the id comes from the request and
  ///   may be any text. The closure runs on the thread that signs or verifies.
  public init(_ find: @escaping @Sendable (String) -> SigningKey?) {
    keys = []
    source = .closure(find)
  }

  /// The key with an id; `nil` if there is none.
  public subscript(id: String) -> SigningKey? {
    switch source {
    // The bytes are compared too, because Swift's strings may be equal although their bytes differ (Unicode
    // equivalence).
    case .keys(let keys): keys[id].flatMap { $0.id.hasSameBytes(as: id) ? $0 : nil }
    case .closure(let find): find(id)
    }
  }

  /// Reads a key ring file (docs/schemas/keys.schema.json).
  ///
  /// - Parameter path: a regular file that only its owner can read.
  /// - Throws: `unreadableFile`; `invalidKeys` with the location in the file and the rule that it breaks.
  public static func load(_ path: String) throws(NetOptError) -> KeyRing {
    let text = try KeyFile.read(path)
    do throws(JSONFault) {
      return try KeyRing(json: text)
    } catch {
      throw NetOptError(
        .invalidKeys, phase: .sign, "the key ring \(path) is not usable: \(error.location): \(error.rule)")
    }
  }

  /// Reads the text of a key ring file.
  package init(json text: SecretBytes) throws(JSONFault) {
    self.init(try KeyFile.keys(JSONDocument.read(text)))
  }

  /// The other versions of a key: the keys of the ring whose ids differ from `id` only after the last dot, as
  /// `app1.v2` differs from `app1.v1`.
  func otherVersions(of id: String) -> [SigningKey] {
    // The part of an id before its last dot, which all versions of a key share; `nil` without a dot.
    func family(_ id: String) -> Substring? { id.lastIndex(of: ".").map { id[..<$0] } }
    guard let own = family(id) else { return [] }
    return keys.filter { $0.id != id && family($0.id) == own }
  }
}
