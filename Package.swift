// swift-tools-version: 6.2
import PackageDescription

/// Every module is compiled the same way: Swift 6 language mode, warnings are errors, and imports stay
/// internal unless they are written `public import`, so that a C type cannot slip into a public signature.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name + "Tests", dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
  name: "netopt",
  products: [
    .library(name: "NetOpt", targets: ["NetOpt"]),
    .library(name: "NetOptSigning", targets: ["NetOptSigning"]),
    .library(name: "NetOptFoundation", targets: ["NetOptFoundation"]),
    .library(name: "NetOptTestSupport", targets: ["NetOptTestSupport"]),
    .library(name: "NetOptFuzzing", targets: ["NetOptFuzzing"]),
    .executable(name: "netopt", targets: ["netopt-cli"]),
  ],
  targets: [
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(name: "CEventLoop"),
    .systemLibrary(name: "CHeap"),
    .systemLibrary(name: "CNetwork"),
    .target(name: "CFrameObserver", linkerSettings: [.linkedLibrary("nghttp2")]),

    module("NetOptLocking"),
    module("NetOptCore", ["NetOptLocking"]),
    module("NetOptCrypto", ["NetOptCore", "NetOptLocking", "CCrypto"]),
    module("NetOptRouting", ["NetOptCore"]),
    module("NetOptSQLite", ["NetOptCore", "CSQLite"]),
    module("NetOptSigning", ["NetOptCore", "NetOptLocking", "NetOptCrypto", "NetOptSQLite"]),
    module("NetOptCaching", ["NetOptCore", "NetOptLocking", "NetOptCrypto", "NetOptSQLite"]),
    module(
      "NetOptEngine",
      [
        "NetOptCore", "NetOptLocking", "CAres", "CBrotli", "CCurl", "CEventLoop", "CFrameObserver",
        "CNetwork", "COpenSSL",
        "CZlib", "CZstd",
      ]),
    module(
      "NetOpt",
      [
        "NetOptCore", "NetOptLocking", "NetOptCrypto", "NetOptRouting", "NetOptSigning", "NetOptCaching",
        "NetOptEngine", "CZlib",
      ]),
    module("NetOptFoundation", ["NetOpt", "NetOptLocking"]),
    module("NetOptBench", ["NetOptCore", "NetOptLocking", "CZlib"]),
    module(
      "NetOptCommands",
      [
        "NetOptBench", "NetOpt", "NetOptCaching", "NetOptCore", "NetOptCrypto", "NetOptEngine",
        "NetOptLocking", "NetOptRouting", "NetOptSigning", "CHeap",
      ]),
    .executableTarget(name: "netopt-cli", dependencies: ["NetOptCommands"], swiftSettings: settings),

    module("NetOptTestSupport", ["NetOpt", "NetOptCore", "NetOptLocking"]),
    // What only this package's tests need: other programs, the conformance suite, hostile servers, extreme
    // values.
    .target(
      name: "TestTools", dependencies: ["NetOptCore", "NetOptLocking", "NetOptTestSupport", "CHeap"],
      path: "Tests/Support", swiftSettings: settings),
    // Replaces lists until it is killed; a test does that.
    .executableTarget(
      name: "list-writer", dependencies: ["NetOpt", "NetOptCore", "NetOptRouting"], path: "Tests/list-writer",
      swiftSettings: settings),

    // Uses URLSession; a test compares what it sees with and without netopt.
    .executableTarget(
      name: "urlsession-program", dependencies: ["NetOpt", "NetOptFoundation"],
      path: "Tests/urlsession-program", swiftSettings: settings),

    // Writes to a disk cache until it is killed; a test does that.
    .executableTarget(
      name: "cache-writer", dependencies: ["NetOptCaching", "NetOptCore", "NetOptLocking"],
      path: "Tests/cache-writer",
      swiftSettings: settings),

    // Measures the stores, which are no part of the library's interface that Benchmarks sees.
    .executableTarget(
      name: "cache-benchmark", dependencies: ["CHeap", "NetOptCaching", "NetOptCommands", "NetOptCore"],
      path: "Benchmarks/Sources/cache-benchmark", swiftSettings: settings),

    // Measures the client: requests, plans, lists, signatures, hits.
    .executableTarget(
      name: "netopt-benchmark", dependencies: ["CHeap", "NetOpt", "NetOptSigning"],
      path: "Benchmarks/Sources/netopt-benchmark", swiftSettings: settings),

    // Runs the routing policy in networks that are made up.
    .target(
      name: "NetOptSimulation", dependencies: ["NetOptCore", "NetOptRouting"], path: "Tests/Simulation",
      swiftSettings: settings),
    .executableTarget(
      name: "netopt-simulate", dependencies: ["NetOptSimulation"],
      path: "Tests/netopt-simulate",
      swiftSettings: settings),

    // Loads a client with servers that share addresses and fail, and checks every answer; the program runs
    // for hours.
    .target(
      name: "NetOptStorm",
      dependencies: [
        "CCurl", "CEventLoop", "NetOpt", "NetOptCore", "NetOptEngine", "NetOptLocking", "NetOptRouting",
        "NetOptTestSupport", "TestTools",
      ], path: "Tests/Storm", swiftSettings: settings),
    .executableTarget(
      name: "netopt-storm", dependencies: ["NetOptStorm"], path: "Tests/netopt-storm", swiftSettings: settings
    ),

    // Compares netopt with curl while servers and the network fail in many ways. The program runs for hours.
    .target(
      name: "FaultMatrix",
      dependencies: [
        "NetOpt", "NetOptCore", "NetOptLocking", "NetOptRouting", "NetOptStorm", "NetOptTestSupport",
        "TestTools",
      ], path: "Tests/Faults", exclude: ["Servers/programs"], swiftSettings: settings),
    .executableTarget(
      name: "netopt-faults", dependencies: ["FaultMatrix"], path: "Tests/netopt-faults",
      swiftSettings: settings),

    // What is fuzzed, and the rules that hold for every input; the package in Fuzz links it with libFuzzer.
    .target(
      name: "NetOptFuzzing",
      dependencies: [
        "NetOpt", "NetOptBench", "NetOptCaching", "NetOptCore", "NetOptCrypto", "NetOptEngine",
        "NetOptLocking",
        "NetOptRouting", "NetOptSigning", "NetOptTestSupport", "TestTools",
      ], path: "Fuzz/Sources/NetOptFuzzing", swiftSettings: settings),

    tests("NetOptCore", ["NetOptCore", "NetOptLocking", "NetOptTestSupport", "TestTools"]),
    tests("NetOptCrypto", ["NetOptCrypto", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests("NetOptSQLite", ["NetOptSQLite", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptSigning",
      [
        "NetOptSigning", "NetOptSQLite", "NetOptCrypto", "NetOptCore", "NetOptLocking", "NetOptTestSupport",
        "TestTools",
        "netopt-cli",
      ]),
    tests(
      "NetOptCaching",
      [
        "NetOptCaching", "NetOptCore", "NetOptCrypto", "NetOptLocking", "NetOptSQLite", "NetOptTestSupport",
        "TestTools",
        "CHeap", "cache-writer",
      ]),
    tests("NetOptRouting", ["NetOptRouting", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptEngine",
      [
        "CFrameObserver", "NetOptEngine", "NetOptCore", "NetOptLocking", "NetOptTestSupport", "TestTools",
        "CZlib",
        "CZstd",
      ]),
    tests(
      "NetOpt",
      [
        "NetOpt", "NetOptCaching", "NetOptCore", "NetOptCrypto", "NetOptLocking", "NetOptEngine",
        "NetOptRouting",
        "NetOptSigning", "NetOptTestSupport", "TestTools", "list-writer",
      ]),
    tests("NetOptBench", ["NetOptBench", "NetOptCore", "NetOptLocking", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptCommands",
      [
        "NetOptCommands", "netopt-cli", "NetOpt", "NetOptCaching", "NetOptCore", "NetOptLocking",
        "NetOptRouting", "NetOptSQLite", "NetOptTestSupport", "TestTools",
      ]),
    tests("NetOptSimulation", ["NetOptSimulation", "NetOptRouting", "NetOptCore"]),
    tests(
      "NetOptStorm",
      ["NetOptStorm", "netopt-storm", "NetOpt", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptFault",
      ["FaultMatrix", "netopt-faults", "NetOpt", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptHostile",
      ["NetOpt", "NetOptCore", "NetOptCrypto", "NetOptLocking", "NetOptTestSupport", "TestTools"]),
    tests(
      "NetOptFoundation",
      [
        "NetOptFoundation", "NetOpt", "NetOptCore", "NetOptLocking", "NetOptTestSupport", "TestTools",
        "urlsession-program",
      ]),
    tests("NetOptFuzzing", ["NetOptFuzzing", "NetOptCore", "NetOptTestSupport", "TestTools"]),
    tests("NetOptTestSupport", ["NetOptTestSupport", "TestTools", "NetOptCore"]),
  ]
)
