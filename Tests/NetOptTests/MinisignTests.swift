import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// netopt verifies signatures that minisign writes, and minisign verifies signatures that netopt writes.
@Suite struct MinisignTests {
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("minisign") }

  /// The bytes of a file in `directory`.
  private func read(_ name: String) throws -> [UInt8] {
    try FileBytes.read("\(directory)/\(name)", upTo: 1 << 20, as: "the test's file", in: .list)
  }

  /// Reads a secret key file in `directory`. The password matters only for an encrypted key.
  private func secretKey(_ name: String, password: String) throws -> MinisignSecretKey {
    try MinisignSecretKey(read(name), file: name) { () throws(NetOptError) in
      SecretBytes(copying: Array(password.utf8))
    }
  }

  @Test(
    "netopt and minisign verify each other's signatures",
    arguments: [MinisignSignature.Algorithm.legacy, .prehashed])
  func interoperability(algorithm: MinisignSignature.Algorithm) async throws {
    try await MinisignProgram.makeKey(in: directory)
    let content = listBytes(serial: 1)
    try replaceFile("\(directory)/list", content)
    let option = algorithm == .legacy ? ["-l"] : []
    let key = try MinisignPublicKey(file: "\(directory)/list.pub")

    // minisign signs, and netopt verifies.
    let made = try await MinisignProgram.run(
      ["-S", "-s", "list.key", "-m", "list", "-t", "their comment"] + option, in: directory)
    try #require(made.isFine, "\(made.output)")
    let theirs = try MinisignSignature(read("list.minisig"), file: "list.minisig")
    #expect(theirs.algorithm == algorithm)
    #expect(theirs.trustedComment == "their comment")
    #expect(try theirs.verify(content, of: "list", by: [key]) == key)

    // netopt signs, and minisign verifies.
    let ours = try secretKey("list.key", password: "").signature(
      of: content, algorithm, untrustedComment: "a comment", trustedComment: "our comment")
    try replaceFile("\(directory)/list.minisig", Array(ours.text.utf8))
    let verified = try await MinisignProgram.run(
      ["-V", "-p", "list.pub", "-m", "list", "-Q"], in: directory)
    #expect(verified.isFine && verified.output == "our comment\n", "\(verified.output)")
    #expect(try MinisignSignature(read("list.minisig"), file: "list.minisig") == ours)
    #expect(verified.isFine)
    // minisign refuses the signature when the file was changed.
    try replaceFile("\(directory)/list", content + [0x20])
    #expect(try await !MinisignProgram.run(["-V", "-p", "list.pub", "-m", "list"], in: directory).isFine)
  }

  /// Parameters of scrypt that netopt refuses in a key file: the number of operations, and the memory in
  /// bytes. In the last pair, the memory is too small for scrypt.
  private static let excessive: [(operations: UInt64, memory: UInt64)] = [
    (68_719_476_736, 1_073_741_824), (134_217_729, 1_073_741_824), (33_554_432, 2_147_483_649), (.max, .max),
    (33_554_432, 32_768),
  ]

  /// A key file from elsewhere may demand hours of work or all of the memory. The reader refuses such a file
  /// before it asks for a password.
  @Test(
    "a secret key that demands too much work or memory is refused before a password is asked for",
    arguments: excessive)
  func excessiveKey(_ wish: (operations: UInt64, memory: UInt64)) async throws {
    let (operations, memory) = wish
    try await MinisignProgram.makeKey(in: directory)
    let lines = try String(decoding: read("list.key"), as: UTF8.self).split(separator: "\n")
    var body = Array(try #require(Data(base64Encoded: String(lines[1]))))
    // Makes the key look encrypted, and writes the parameters in little-endian order.
    body[2..<4] = Array("Sc".utf8)[...]
    for byte in 0..<8 {
      body[38 + byte] = UInt8(truncatingIfNeeded: operations >> (8 * byte))
      body[46 + byte] = UInt8(truncatingIfNeeded: memory >> (8 * byte))
    }
    let text = "\(lines[0])\n\(Data(body).base64EncodedString())\n"
    let error = #expect(throws: NetOptError.self) {
      try MinisignSecretKey(Array(text.utf8), file: "huge.key") { () throws(NetOptError) in
        Issue.record("nobody has to type a password for that")
        return SecretBytes(copying: [])
      }
    }
    #expect(error?.code == .invalidKey)
    #expect(error?.message.hasPrefix("huge.key: ") == true)
    if memory >= 1 << 16 {
      #expect(error?.message.contains("\(operations) operations and \(memory >> 20) MiB") == true)
    }
  }

  @Test("an encrypted secret key signs with its password and is refused with another")
  func encryptedKey() async throws {
    let made = try await MinisignProgram.run(
      ["-G", "-f", "-s", "secret.key", "-p", "secret.pub"], in: directory, password: "correct horse")
    try #require(made.isFine, "\(made.output)")
    let publicKey = try MinisignPublicKey(file: "\(directory)/secret.pub")
    let wrong = #expect(throws: NetOptError.self) { try secretKey("secret.key", password: "wrong mule") }
    #expect(wrong?.code == .invalidKey)
    #expect(wrong?.message == "secret.key: the password is wrong, or the key is damaged")
    let key = try secretKey("secret.key", password: "correct horse")
    #expect(key.publicKey == publicKey)
    let content = listBytes(serial: 2)
    try replaceFile("\(directory)/list", content)
    let signature = try key.signature(of: content, untrustedComment: "a", trustedComment: "b")
    try replaceFile("\(directory)/list.minisig", Array(signature.text.utf8))
    let verified = try await MinisignProgram.run(["-V", "-p", "secret.pub", "-m", "list"], in: directory)
    #expect(verified.isFine, "\(verified.output)")
    // This key is not encrypted, so it needs no password.
    try await MinisignProgram.makeKey(in: directory)
    #expect(
      try secretKey("list.key", password: "x").publicKey == MinisignPublicKey(file: "\(directory)/list.pub"))
  }

  @Test("a public key is read from its base64 form and from a file with a comment line")
  func publicKeyForms() throws {
    let text = "RWRfPJTkYCuQ4unCe4sZbNIGq2XxcAGfYaz7MS0k7lxSencIssLLgdyo"
    let key = try MinisignPublicKey(text)
    #expect(key.id == "E2902B60E4943C5F")
    #expect(key.description == text)
    #expect(
      try MinisignPublicKey("untrusted comment: minisign public key E2902B60E4943C5F\n\(text)\n") == key)
    #expect(try MinisignPublicKey("untrusted comment: x\r\n\(text)\r\n") == key)
  }

  @Test(
    "a faulty public key is refused with a message that names the fault",
    arguments: [
      ("", "the public key: a public key file has 2 lines, but this file has 0"),
      ("RWRf", "the public key: line 1 has 3 bytes in base64, but a minisign public key has 42"),
      (
        "a comment\nRWRfPJTkYCuQ4unCe4sZbNIGq2XxcAGfYaz7MS0k7lxSencIssLLgdyo",
        "must begin with \"untrusted comment: \""
      ),
      ("untrusted comment: x\nRWRf\nRWRf", "a public key file has 2 lines, but this file has 3"),
      ("RURfPJTkYCuQ4unCe4sZbNIGq2XxcAGfYaz7MS0k7lxSencIssLLgdyo", "it is not a minisign key"),
      ("RWRfPJTkYCuQ4unCe4sZbNIGq2XxcAGfYaz7MS0k7lxSencIssLLgdyp", nil),
    ] as [(String, String?)])
  func faultyPublicKeys(text: String, message: String?) {
    // Without a message, the text is a valid key: another last byte makes another key.
    guard let message else {
      #expect(throws: Never.self) { try MinisignPublicKey(text) }
      return
    }
    let error = #expect(throws: NetOptError.self) { try MinisignPublicKey(text) }
    #expect(error?.code == .invalidKey)
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }

  @Test("a faulty signature file is refused with a message that names the fault")
  func faultySignatures() throws {
    let signer = try ListSigner()
    let good = String(decoding: try signer.signature(of: [1, 2, 3]), as: UTF8.self)
    let lines = good.split(separator: "\n").map(String.init)
    /// The signature file with another line at an index.
    func text(_ index: Int, _ line: String) -> String {
      var changed = lines
      changed[index] = line
      return changed.joined(separator: "\n") + "\n"
    }
    let cases: [(String, String)] = [
      ("", "a minisign signature has 4 lines, but this file has 0"),
      (lines[0] + "\n" + lines[1] + "\n", "a minisign signature has 4 lines, but this file has 2"),
      (good + "more\n", "a minisign signature has 4 lines, but this file has 5"),
      (text(0, "comment: x"), "line 1 must begin with \"untrusted comment: \""),
      (text(1, lines[1] + "="), "line 2 must be a minisign signature in base64"),
      (text(1, " " + lines[1]), "line 2 must be a minisign signature in base64"),
      (
        text(1, String(lines[1].dropLast(4))),
        "line 2 has 72 bytes in base64, but a minisign signature has 74"
      ),
      (text(1, "QUJD" + lines[1].dropFirst(4)), "line 2 names an algorithm that minisign does not support"),
      (text(2, "untrusted comment: x"), "line 3 must begin with \"trusted comment: \""),
      (text(2, "trusted comment: \u{1b}[2J"), "it has a control character"),
      (text(3, "AAAA"), "line 4 has 3 bytes in base64, but the signature of the comment has 64"),
      ("<html>" + String(repeating: " ", count: 20_000), "it is larger than 16384 bytes"),
    ]
    for (text, message) in cases {
      let error = #expect(throws: NetOptError.self) {
        try MinisignSignature(Array(text.utf8), file: "l.minisig")
      }
      #expect(error?.code == .invalidSignature)
      #expect(error?.message == "l.minisig: \(message)")
    }
    #expect(throws: NetOptError.self) { try MinisignSignature([0xff, 0xfe], file: "l.minisig") }
    #expect(throws: Never.self) {
      try MinisignSignature(Array(good.replacing("\n", with: "\r\n").utf8), file: "l.minisig")
    }
  }

  @Test("changed content, a changed trusted comment and an untrusted key fail verification")
  func changedContent() throws {
    let signer = try ListSigner()
    let other = try ListSigner()
    let content = listBytes(serial: 3)
    for algorithm in [MinisignSignature.Algorithm.legacy, .prehashed] {
      let bytes = try signer.signature(of: content, algorithm)
      let signature = try MinisignSignature(bytes, file: "s")
      try signature.verify(content, of: "l", by: [other.publicKey, signer.publicKey])
      /// Checks that the signature does not verify, and that the error contains `message`.
      func fails(_ signature: MinisignSignature, _ content: [UInt8], _ message: String) {
        let error = #expect(throws: NetOptError.self) {
          try signature.verify(content, of: "l", by: [signer.publicKey])
        }
        #expect(error?.code == .invalidSignature)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
      }
      for index in stride(from: 0, to: content.count, by: 7) {
        var changed = content
        changed[index] ^= 0x04
        fails(signature, changed, "the file or its signature was changed")
      }
      let text = String(decoding: bytes, as: UTF8.self)
      let comment = text.replacing("a test's list", with: "another list")
      fails(try MinisignSignature(Array(comment.utf8), file: "s"), content, "the trusted comment")
      // The signature does not cover the first line of the file, which has the untrusted comment.
      let first = text.replacing("a comment", with: "another comment")
      try MinisignSignature(Array(first.utf8), file: "s").verify(content, of: "l", by: [signer.publicKey])
      let error = #expect(throws: NetOptError.self) {
        try signature.verify(content, of: "l", by: [other.publicKey])
      }
      #expect(
        error?.message
          == "l is signed with the key \(signer.publicKey.id), which is not trusted; trusted: \(other.publicKey.id)"
      )
    }
  }

  @Test("a faulty secret key, and a comment with a line break, are refused")
  func faultySecretKeys() throws {
    let file = try ListSigner().keyFile
    let lines = file.split(separator: "\n").map(String.init)
    let body = lines[1]
    /// The key file with other characters in a range of its second line, which is base64.
    func changed(_ range: Range<Int>, _ text: String) -> String {
      lines[0] + "\n" + body.prefix(range.lowerBound) + text + body.dropFirst(range.upperBound) + "\n"
    }
    let cases = [
      (lines[0] + "\n", "a minisign secret key has 2 lines"),
      (lines[0] + "\nAAAA\n", "has 3 bytes in base64"),
      (changed(0..<3, "QUJ"), "it is not of a kind that minisign supports"),
      (changed(3..<5, "Br"), "an encryption that minisign does not support"),
      (
        changed(100..<104, body[body.index(body.startIndex, offsetBy: 100)] == "A" ? "BBBB" : "AAAA"),
        "its two halves do not match"
      ),
    ]
    for (text, message) in cases {
      let error = #expect(throws: NetOptError.self) {
        try MinisignSecretKey(Array(text.utf8), file: "k") { () throws(NetOptError) in
          SecretBytes(copying: [])
        }
      }
      #expect(error?.code == .invalidKey)
      #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }
    let signer = try ListSigner()
    #expect(throws: NetOptError.self) {
      try signer.key.signature(of: [], untrustedComment: "two\nlines", trustedComment: "")
    }
  }

  /// Changes key files and signature files at random. No change may make a parser crash. A changed signature
  /// file may verify only if the changes are in parts that the signature does not cover.
  @Test("mutated keys and signatures do not crash the parsers, and no mutated signature is verified")
  func mutations() throws {
    let signer = try ListSigner()
    let content = listBytes(serial: 4)
    let good = try signer.signature(of: content)
    // The end of the first line. The signature does not cover this line.
    let first = try #require(good.firstIndex(of: 0x0a))
    var random = SplitMix64(seed: 0x5167)
    for round in 0..<8_000 {
      var bytes = round % 5 == 0 ? Array(signer.keyFile.utf8) : good
      for _ in 0...random.below(3) {
        let place = Int(random.below(UInt64(max(bytes.count, 1))))
        switch random.below(5) {
        case 0 where !bytes.isEmpty: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1 where !bytes.isEmpty: bytes[place] ^= 1 << UInt8(random.below(8))
        case 2 where !bytes.isEmpty: bytes.remove(at: place)
        case 3: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: min(place, bytes.count))
        default: bytes = Array(bytes.prefix(place))
        }
      }
      _ = try? MinisignPublicKey(String(decoding: bytes, as: UTF8.self))
      _ = try? MinisignSecretKey(bytes, file: "k") { () throws(NetOptError) in
        throw NetOptError(.cancelled, phase: .list, "nobody is asked")
      }
      guard let signature = try? MinisignSignature(bytes, file: "s") else { continue }
      let isVerified = (try? signature.verify(content, of: "l", by: [signer.publicKey])) != nil
      // The signature must verify if the lines after the first are unchanged, apart from their line endings.
      // Otherwise it must not verify.
      let meaning = { (bytes: ArraySlice<UInt8>) in bytes.filter { $0 != 0x0d && $0 != 0x0a } }
      // The end of the first line in the changed file.
      let second = bytes.firstIndex(of: 0x0a) ?? bytes.startIndex
      #expect(isVerified == (meaning(bytes[second...]) == meaning(good[first...])))
    }
  }
}
