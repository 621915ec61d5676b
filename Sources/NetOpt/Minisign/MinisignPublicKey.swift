import FoundationEssentials
public import NetOptCore

/// A minisign public key (https://jedisct1.github.io/minisign/), which verifies signed lists.
public struct MinisignPublicKey: Hashable, Sendable, CustomStringConvertible {
  /// The key id, 8 bytes. A signature names the key that made it by this id.
  let idBytes: [UInt8]
  /// The Ed25519 public key, 32 bytes.
  let key: [UInt8]

  /// The key id as minisign shows it: `E2902B60E4943C5F`.
  public var id: String { MinisignText.name(ofKey: idBytes) }

  /// The key in base64, as `minisign -P` takes it: `RWRfPJTkYCuQ4u…`.
  public var description: String { Data(MinisignText.ed25519 + idBytes + key).base64EncodedString() }

  init(idBytes: [UInt8], key: [UInt8]) {
    self.idBytes = idBytes
    self.key = key
  }

  /// Reads a key.
  ///
  /// - Parameter text: the key in base64, or the content of a public key file: a line with a comment, and a
  ///   line with the key.
  /// - Throws: `invalidKey`, with the reason.
  public init(_ text: String) throws(NetOptError) {
    try self.init(Array(text.utf8), name: "the public key")
  }

  /// Reads a key from a file.
  ///
  /// - Throws: `unreadableFile`, `invalidKey`.
  public init(file path: String) throws(NetOptError) {
    let bytes = try FileBytes.read(
      path, upTo: MinisignText.maximumBytes, as: "the public key", in: .list)
    try self.init(bytes, name: path)
  }

  /// Reads a key from the bytes of its text: the key alone, or the content of a public key file.
  ///
  /// - Parameter name: the name of the key or of its file in messages.
  private init(_ bytes: [UInt8], name: String) throws(NetOptError) {
    let text = try MinisignText(bytes, file: name, code: .invalidKey)
    let line = text.lines.count == 1 ? 0 : 1
    if line == 1 {
      try text.expect(2, "a public key file")
      _ = try text.comment(0, after: MinisignText.untrusted)
    }
    let key = try text.base64(line, count: 42, "a minisign public key")
    guard key.starts(with: MinisignText.ed25519) else {
      throw text.fault("it is not a minisign key: minisign keys begin with \"RW\"")
    }
    self.init(idBytes: Array(key[2..<10]), key: Array(key[10...]))
  }
}
