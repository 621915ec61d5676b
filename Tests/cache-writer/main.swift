// Usage: cache-writer DIRECTORY SEED
//        cache-writer DIRECTORY removals
//
// Writes, reads and removes entries of the disk cache in DIRECTORY, as fast as possible, until it is killed.
// `CacheKillTests` kills it, and then checks the entries that are left. The fields of an entry determine its
// body, so the test can check the body.
//
// With `removals`, it removes entries through a `DiskCache` whose thread cannot start, and prints which entries
// the store still has (Removals.swift).
import Glibc
import NetOptCaching
import NetOptCore

/// The directory of the disk cache.
let directory = CommandLine.arguments[1]
if CommandLine.arguments[2] == "removals" {
  try removeWithoutThread(in: directory)
  exit(0)
}
guard let seed = UInt64(CommandLine.arguments[2]) else { fatalError("the seed is a number") }
var random = SplitMix64(seed: seed)
let store = DiskStore(directory, limits: CacheLimits(maxBytes: 24 << 20, maxEntries: 150)) { warning in
  let line = "warning: \(warning.message)\n"
  write(STDOUT_FILENO, line, line.utf8.count)
}
while true {
  // The number of the entry's key, and a random version of its body.
  let number = random.below(200)
  let version = random.next()
  // Every fourth entry is large enough for a file of its own.
  let length = number % 4 == 0 ? 100_001 + random.below(200_000) : random.below(20_000)
  // The sum of the number and the version, which are both in the fields, is the seed of the body's bytes.
  var body = SplitMix64(seed: version &+ number)
  var bytes: [UInt8] = []
  while bytes.count < Int(length) { withUnsafeBytes(of: body.next()) { bytes.append(contentsOf: $0) } }
  let key = try CacheKey(
    api: "GET https://a.test/\(number)", parameters: "number=\(number)", partition: "p\(number % 3)")
  switch random.below(10) {
  case 0: store.removeAll(for: key)
  case 1...3: _ = store.entries(for: key)
  default:
    store.insert(
      CacheEntry(
        key: key, status: 200, fields: ["X-Number": "\(number)", "X-Version": "\(version)"], body: bytes,
        requested: 1, received: 1, fetchMicroseconds: Int64(random.below(100_000))))
  }
}
