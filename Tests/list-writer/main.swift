// Replaces a list and its copy repeatedly, as fast as possible, until it is killed: list-writer DIRECTORY KEY
// URL. DIRECTORY contains list.json with its signature; copies go to DIRECTORY/state. KEY is an unencrypted
// secret key.
import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting

let directory = CommandLine.arguments[1]
let url = try HTTPURL(CommandLine.arguments[3])
let key = try MinisignSecretKey(
  FileBytes.read(CommandLine.arguments[2], upTo: 4096, as: "the key", in: .list), file: "the key"
) { () throws(NetOptError) in
  throw NetOptError(.invalidKey, phase: .list, "the key is encrypted")
}
let reader = ListReader(trustedKeys: [key.publicKey], allowPrivateAddresses: true)
let store = ListStore(directory: "\(directory)/state", for: reader)
let endpoints = (0..<250).map { #"{"ip":"10.0.\#($0).1","region":"somewhere"}"# }.joined(separator: ",")
var serial = try reader.file("\(directory)/list.json", at: Date(), allowExpired: false).list.serial
while true {
  serial += 1
  let bytes = Array(
    #"{"schema":1,"serial":\#(serial),"refresh":{"url":"\#(url)"},"hosts":{"a.test":{"endpoints":[\#(endpoints)]}}}"#
      .utf8)
  let signature = Array(
    try key.signature(of: bytes, untrustedComment: "a comment", trustedComment: "serial \(serial)").text.utf8)
  let list = try reader.check(bytes, signature: signature, name: "the new list", at: Date())
  try store.keep(
    ListStore.Copy(source: url.description, tag: "\"\(serial)\"", list: bytes, signature: signature), of: url
  ) { _ in false }
  try store.keep(RefreshSchedule.Record(checked: Date(), attempted: Date(), failures: 0), of: url)
  guard try reader.replace("\(directory)/list.json", by: list, at: Date()) else {
    fatalError("nobody else writes the list")
  }
}
