package import FoundationEssentials
import Glibc
package import NetOptCore
package import NetOptRouting

/// A list that keeps all rules, with the bytes that it was read from.
package struct VerifiedList: Sendable {
  /// The list.
  package let list: EndpointList
  /// The file.
  package let bytes: [UInt8]
  /// The signature file, when one was looked at.
  package let signature: [UInt8]?
  /// The id of the key that signed it, when keys are configured.
  package let signedBy: String?
}

/// Reads lists by the rules of a configuration: signed by a trusted key when there are such keys, and as
/// `EndpointList.check` demands.
package struct ListReader: Sendable {
  /// The keys that are trusted. Without any, signatures are not looked at.
  package let trustedKeys: [MinisignPublicKey]
  /// Whether private addresses may stand in a list.
  package let allowPrivateAddresses: Bool

  /// Makes a reader.
  package init(trustedKeys: [MinisignPublicKey], allowPrivateAddresses: Bool) {
    self.trustedKeys = trustedKeys
    self.allowPrivateAddresses = allowPrivateAddresses
  }

  /// The file that has the signature of another.
  package static func signatureFile(of path: String) -> String { path + ".minisig" }

  /// The file that has the signature of the list that is about to take another's place: two files cannot be replaced at
  /// once, so the new signature is there before the new list, under this name.
  package static func nextSignatureFile(of path: String) -> String { path + ".minisig.next" }

  /// Checks a list.
  ///
  /// - Parameters:
  ///   - signature: the signature file, or `nil` when there is none.
  ///   - name: what messages call the list. Its signature is called the same with `.minisig`.
  ///   - now: the present moment.
  ///   - allowExpired: whether a list that is past its `expires` will do.
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

  private func verify(
    _ bytes: [UInt8], _ signature: [UInt8]?, _ name: String
  ) throws(NetOptError) -> String? {
    // A list that is too large was not read to its end; that is said by the check.
    guard !trustedKeys.isEmpty, bytes.count <= EndpointList.maximumBytes else { return nil }
    guard let signature else {
      throw NetOptError(
        .invalidSignature, phase: .list,
        "\(name) is not signed, and only lists that a trusted key has signed are used; there is no \(Self.signatureFile(of: name))"
      )
    }
    return try MinisignSignature(signature, file: Self.signatureFile(of: name))
      .verify(bytes, of: name, by: trustedKeys).id
  }

  /// Reads a list from a file, and its signature from the file beside it.
  ///
  /// - Throws: `unreadableFile`, `invalidSignature`, `invalidList`.
  package func file(
    _ path: String, at now: Date, allowExpired: Bool
  ) throws(NetOptError) -> VerifiedList {
    var attempts = 3
    while true {
      do throws(NetOptError) {
        return try read(path, now, allowExpired)
      } catch {
        // List and signature may have been replaced between reading the one and the other.
        attempts -= 1
        if attempts == 0 || error.code != .invalidSignature { throw error }
      }
    }
  }

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

  /// The content of a signature file, or `nil` when there is none.
  package static func signature(_ path: String) throws(NetOptError) -> [UInt8]? {
    do throws(NetOptError) {
      return try FileBytes.read(
        path, upTo: MinisignText.maximumBytes, as: "the signature of the IP list", in: .list)
    } catch {
      if error.underlying?.code == ENOENT { return nil }
      throw error
    }
  }

  /// Puts a list and its signature in the place of older ones. Whatever happens on the way, what is there afterwards
  /// is one of the two lists, whole, with its signature beside it for those who read it with `file`. Of a link, what it
  /// leads to is replaced; signatures are beside the path as it is given, where `file` looks for them.
  ///
  /// - Parameter patience: how long is waited for another process that replaces it. Default: 5 s.
  /// - Returns: false when the list that is there by now is as new, because another process has replaced it.
  /// - Throws: `unwritableFile`; then the old list is still there, unless the message says that it was replaced.
  package func replace(
    _ path: String, by new: VerifiedList, at now: Date, patience: Duration = FileLock.patience
  ) throws(NetOptError) -> Bool {
    let next = Self.nextSignatureFile(of: path)
    let last = Self.signatureFile(of: path)
    // On the folder: the files themselves are replaced.
    let lock = try FileLock(
      FileBytes.folder(of: FileBytes.resolved(path)), .folder, within: patience, as: "the IP list \(path)",
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

  /// Gives the signature of the list that is there its name, when a process that was killed left it under the name of
  /// the next one: that is about to be written over.
  private func keepSignature(of present: VerifiedList?, _ path: String) throws(NetOptError) {
    let next = Self.nextSignatureFile(of: path)
    let last = Self.signatureFile(of: path)
    guard let left = try Self.signature(next), left != (try Self.signature(last)) else { return }
    if trustedKeys.isEmpty {
      throw NetOptError(
        .invalidSignature, phase: .list,
        "\(path) was being replaced when that was cut short, and without a trusted key nobody can say whether its signature is \(last) or \(next); name the key, or remove the wrong one"
      )
    }
    if let present, present.signature == left { try Self.write(left, to: last) }
  }

  private static func write(_ signature: [UInt8], to path: String) throws(NetOptError) {
    try FileBytes.replace(path, with: signature, mode: 0o644, as: "the signature of the IP list", in: .list)
  }
}
