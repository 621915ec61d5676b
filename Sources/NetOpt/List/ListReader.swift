package import FoundationEssentials
import Glibc
package import NetOptCore
package import NetOptRouting

/// A list that has passed all checks of a `ListReader`, with the bytes that it was read from.
package struct VerifiedList: Sendable {
  /// The list.
  package let list: EndpointList
  /// The bytes of the list.
  package let bytes: [UInt8]
  /// The bytes of the signature. `nil` when the reader got no signature, which it accepts only when it has no
  /// trusted keys.
  package let signature: [UInt8]?
  /// The id of the key that signed the list; `nil` when no keys are configured.
  package let signedBy: String?
}

/// Reads lists and checks them by the rules of a configuration. Every list must pass `EndpointList.check`.
/// When there are trusted keys, one of them must have signed the list.
package struct ListReader: Sendable {
  /// The keys that may sign lists. Without keys the reader does not check signatures.
  package let trustedKeys: [MinisignPublicKey]
  /// Whether a list may contain private and loopback addresses.
  package let allowPrivateAddresses: Bool

  /// Makes a reader.
  package init(trustedKeys: [MinisignPublicKey], allowPrivateAddresses: Bool) {
    self.trustedKeys = trustedKeys
    self.allowPrivateAddresses = allowPrivateAddresses
  }

  /// The path of the signature file that belongs to the list file at `path`.
  package static func signatureFile(of path: String) -> String { path + ".minisig" }

  /// The path where `replace` stores the signature of a new list while it replaces the list. This file is
  /// necessary because a list and its signature cannot be replaced in one step.
  package static func nextSignatureFile(of path: String) -> String { path + ".minisig.next" }

  /// Checks a list.
  ///
  /// - Parameters:
  ///   - signature: the content of the signature file, or `nil` when there is none.
  ///   - name: the name of the list in messages. The name of its signature is this name with `.minisig`.
  ///   - now: the present moment.
  ///   - allowExpired: whether to accept a list after its `expires`.
  /// - Throws: `invalidSignature`, `invalidList`.
  package func check(
    _ bytes: [UInt8], signature: [UInt8]?, name: String, at now: Date, allowExpired: Bool = false
  ) throws(NetOptError) -> VerifiedList {
    let signedBy = try verify(bytes, signature, name)
    let rules = ListRules(
      allowPrivateAddresses: allowPrivateAddresses, allowExpired: allowExpired, now: now)
    let list = try EndpointList(bytes, file: name, rules: rules)
    return VerifiedList(list: list, bytes: bytes, signature: signature, signedBy: signedBy)
  }

  /// Checks that a trusted key has signed a list.
  ///
  /// - Returns: the id of the key that signed the list. `nil` when nothing was checked: without trusted keys,
  ///   and for a list that is too large.
  private func verify(
    _ bytes: [UInt8], _ signature: [UInt8]?, _ name: String
  ) throws(NetOptError) -> String? {
    // A list that is too large was not read completely, so its signature cannot be checked. The caller then
    // checks the rules of the list, and that check throws an error about its size.
    guard !trustedKeys.isEmpty, bytes.count <= EndpointList.maximumBytes else { return nil }
    guard let signature else {
      throw NetOptError(
        .invalidSignature, phase: .list,
        "\(name) is not signed, and netopt uses only lists signed by a trusted key; there is no \(Self.signatureFile(of: name))"
      )
    }
    return try MinisignSignature(signature, file: Self.signatureFile(of: name))
      .verify(bytes, of: name, by: trustedKeys).id
  }

  /// Reads a list from a file, and its signature from the file beside it.
  ///
  /// - Parameters:
  ///   - now: the present moment.
  ///   - allowExpired: whether to accept a list after its `expires`.
  /// - Throws: `unreadableFile`, `invalidSignature`, `invalidList`.
  package func file(
    _ path: String, at now: Date, allowExpired: Bool
  ) throws(NetOptError) -> VerifiedList {
    var attempts = 3
    while true {
      do throws(NetOptError) {
        return try read(path, now, allowExpired)
      } catch {
        // Another process may have replaced the list and its signature after this process read the list and
        // before it read the signature. So this function tries three times.
        attempts -= 1
        if attempts == 0 || error.code != .invalidSignature { throw error }
      }
    }
  }

  /// Reads and checks a list file once. Also accepts the signature in `nextSignatureFile`, because a process
  /// may have been killed while it replaced the list.
  private func read(
    _ path: String, _ now: Date, _ allowExpired: Bool
  ) throws(NetOptError) -> VerifiedList {
    let bytes = try FileBytes.read(path, upTo: EndpointList.maximumBytes, as: "the IP list", in: .list)
    if trustedKeys.isEmpty {
      return try check(bytes, signature: nil, name: path, at: now, allowExpired: allowExpired)
    }
    let signature = try Self.signature(Self.signatureFile(of: path))
    do throws(NetOptError) {
      return try check(bytes, signature: signature, name: path, at: now, allowExpired: allowExpired)
    } catch {
      guard error.code == .invalidSignature, let next = try Self.signature(Self.nextSignatureFile(of: path)),
        let list = try? check(bytes, signature: next, name: path, at: now, allowExpired: allowExpired)
      else { throw error }
      return list
    }
  }

  /// Reads a signature file. Returns `nil` when the file does not exist.
  package static func signature(_ path: String) throws(NetOptError) -> [UInt8]? {
    do throws(NetOptError) {
      return try FileBytes.read(
        path, upTo: MinisignText.maximumBytes, as: "the signature of the IP list", in: .list)
    } catch {
      if error.underlying?.code == ENOENT { return nil }
      throw error
    }
  }

  /// Replaces a list file and its signature file. When the process is killed meanwhile, the file at the path
  /// is still the complete old list or the complete new list, and `file` finds the signature that belongs to
  /// it. If the path is a link, the function replaces the list that the link points to. The signature files
  /// are beside the link, where `file` looks for them.
  ///
  /// - Parameters:
  ///   - new: the new list.
  ///   - now: the present moment.
  ///   - lockTimeout: how long to wait for another process that replaces the list. Default: 5 s.
  /// - Returns: false when the list at the path has the serial of `new` or a higher one. Nothing is replaced
  ///   then.
  /// - Throws: `unwritableFile`; `invalidSignature` when an earlier replacement was interrupted and the
  ///   reader has no trusted keys, without which it cannot tell which signature belongs to the list. After an
  ///   error the old list is still there, unless the message says that it was replaced.
  package func replace(
    _ path: String, by new: VerifiedList, at now: Date, lockTimeout: Duration = FileLock.defaultTimeout
  ) throws(NetOptError) -> Bool {
    let next = Self.nextSignatureFile(of: path)
    let last = Self.signatureFile(of: path)
    // The lock is on the directory, because a lock on a file would stay with the old file when the file is
    // replaced.
    let lock = try FileLock(
      FileBytes.folder(of: FileBytes.resolved(path)), .folder, within: lockTimeout, as: "the IP list \(path)",
      in: .list)
    defer { withExtendedLifetime(lock) {} }
    let present = try? file(path, at: now, allowExpired: true)
    if let present, present.list.serial >= new.list.serial { return false }
    for file in [path, last, next] { FileBytes.removeDrafts(of: file) }
    if let signature = new.signature {
      try keepSignature(of: present, path)
      try Self.write(signature, to: next)
    }
    try FileBytes.replace(path, with: new.bytes, mode: 0o644, as: "the IP list", in: .list)
    if let signature = new.signature {
      do throws(NetOptError) { try Self.write(signature, to: last) } catch {
        throw NetOptError(
          .unwritableFile, phase: .list,
          "\(path) was replaced, but its signature is still in \(next): \(error.message)",
          underlying: error.underlying)
      }
      unlink(next)
      FileBytes.syncFolder(FileBytes.folder(of: next))
    }
    return true
  }

  /// Keeps the signature of the list that is at the path now. When a process was killed during a replacement,
  /// this signature may be only in `nextSignatureFile`, which the caller overwrites next. This function then
  /// copies the signature to `signatureFile`.
  ///
  /// - Parameter present: the list at the path; `nil` when it is not valid.
  /// - Throws: `invalidSignature` when the two files have different signatures and the reader has no trusted
  ///   keys to tell which one belongs to the list.
  private func keepSignature(of present: VerifiedList?, _ path: String) throws(NetOptError) {
    let next = Self.nextSignatureFile(of: path)
    let last = Self.signatureFile(of: path)
    guard let left = try Self.signature(next), left != (try Self.signature(last)) else { return }
    if trustedKeys.isEmpty {
      throw NetOptError(
        .invalidSignature, phase: .list,
        "\(path) was only partly replaced, and netopt needs a trusted key to tell whether its signature is \(last) or \(next); name the key, or remove the wrong file"
      )
    }
    if let present, present.signature == left { try Self.write(left, to: last) }
  }

  private static func write(_ signature: [UInt8], to path: String) throws(NetOptError) {
    try FileBytes.replace(path, with: signature, mode: 0o644, as: "the signature of the IP list", in: .list)
  }
}
