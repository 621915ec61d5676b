import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt
@testable import NetOptEngine

/// Files of certificate authorities that OpenSSL would read for seconds.
@Suite struct AuthorityFileTests {
  /// Returns a PEM block with these bytes in lines of `width` characters.
  private func block(_ bytes: [UInt8], width: Int) -> String {
    let text = Array(Data(bytes).base64EncodedString())
    let lines = stride(from: 0, to: text.count, by: width).map {
      String(text[$0..<min($0 + width, text.count)])
    }
    return (["-----BEGIN CERTIFICATE-----"] + lines + ["-----END CERTIFICATE-----", ""]).joined(
      separator: "\n")
  }

  /// Returns a block in one of the forms that OpenSSL reads, although they break RFC 7468.
  private func hiding(_ block: String, _ random: inout SplitMix64) -> String {
    let end = "\n-----END CERTIFICATE-----\n"
    let content = String(block.dropLast(end.count))
    // OpenSSL reads a line of 254 bytes, and then the rest as another line.
    let last = content.split(separator: "\n").last?.count ?? 0
    let padded = content + String(repeating: " ", count: 254 - last)
    switch random.below(6) {
    case 0: return block
    case 1: return content + "\n-----BEGIN X-----" + end
    case 2: return padded + end.dropFirst()
    case 3: return padded + "-----BEGIN X-----" + end
    case 4:
      let begin = "-----BEGIN CERTIFICATE-----"
      return begin + String(repeating: " ", count: 254 - begin.count) + content.dropFirst(begin.count + 1)
        + end
    default: return content + "\n=-AAAA" + end
    }
  }

  @Test(
    "the parameters of a curve are found wherever they stand in a certificate",
    arguments: 1...50 as ClosedRange<UInt64>)
  func curves(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    func bytes(_ count: UInt64) -> [UInt8] { (0..<count).map { _ in UInt8(random.below(256)) } }
    let parameters: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01, UInt8(1 + random.below(2))]
    let width = 20 + Int(random.below(60))
    let others = (0..<random.below(5)).map { _ in block(bytes(random.below(2000)), width: width) }
    let found = hiding(
      block(bytes(random.below(2000)) + parameters + bytes(random.below(2000)), width: width), &random)
    #expect(!AuthorityFile.describesCurve(Array(others.joined().utf8)), "seed \(seed)")
    let position = Int(random.below(UInt64(others.count + 1)))
    let all = others[..<position].joined() + found + others[position...].joined()
    #expect(AuthorityFile.describesCurve(Array(all.utf8)), "seed \(seed)")
  }

  @Test(
    "a text with many marks is checked at once", .timeLimit(.minutes(1)),
    arguments: ["-----BEGIN ", "-----END ", "-----BEGIN -----END ", "-"])
  func manyMarks(_ mark: String) {
    let text = block([1], width: 64) + String(repeating: mark, count: (1 << 20) / mark.utf8.count)
    #expect(!AuthorityFile.describesCurve(Array(text.utf8)))
  }

  @Test("a client refuses a file with such a certificate, and a file of more than 1 MiB")
  func refusedFiles() throws {
    let path = try TemporaryDirectory.make("authorities") + "/ca.pem"
    let curve = block([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01, 0x01], width: 64)
    let large = block([UInt8](repeating: 1, count: 1 << 20), width: 64)
    for (text, reason) in [(curve, "elliptic curve"), (large, "more than 1 MiB")] {
      try TextFile.write(text, to: path)
      var configuration = ClientConfiguration()
      configuration.list = .none
      configuration.tls.caFile = path
      let error = #expect(throws: NetOptError.self) { try NetOptClient(configuration) }
      #expect(error?.code == .invalidConfiguration && error?.message.contains(reason) == true)
    }
  }
}
