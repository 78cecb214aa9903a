// swift-tools-version:6.2
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

/// For tests that look at megabytes of bytes and lines again and again, which in code without optimization costs more
/// than the program under test.
let optimized = swiftSettings + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// Tests are compiled in a third of the time without it, also where the program that they try is optimized.
let unoptimized = swiftSettings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// The Swift runtime is linked statically, so that the installed program needs no toolchain. libcurl and zlib stay
/// shared, so that the distribution's security updates reach them (Sources/CCurl loads libcurl at run time). Tests that
/// import the program need the runtime's library, so where they are linked, the program is linked once more.
let standalone: [LinkerSetting] =
  Context.environment["SPOOLRUN_TESTS"] == nil
  // ArgumentParser's objects name no libraries that only a static link needs.
  ? [
    .unsafeFlags(["-static-stdlib", "-l_FoundationCollections", "-l_FoundationCShims"], .when(configuration: .release))
  ] : []

/// The texts at the head of folders of a target; without names, that of the target itself.
func readmes(_ folders: String...) -> [String] { folders.isEmpty ? ["README.md"] : folders.map { "\($0)/README.md" } }

// libFuzzer comes with the compiler's -sanitize=fuzzer, and nothing that wants it links without (`make fuzz`).
let fuzzing: [Target] =
  Context.environment["SPOOLRUN_FUZZ"] == nil
  ? []
  : [
    .systemLibrary(name: "CLibFuzzer", path: "Tests/Fuzz/CLibFuzzer"),
    .executableTarget(
      name: "FuzzRig", dependencies: ["CLibFuzzer", "FuzzProperties"], path: "Tests/Fuzz/Rig", exclude: ["dictionary"],
      swiftSettings: swiftSettings),
  ]

let package = Package(
  name: "spoolrun",
  products: [
    .executable(name: "spoolrun", targets: ["spoolrun"]),
    .executable(name: "spoolrun-entries", targets: ["spoolrun-entries"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
  ],
  targets: [
    // C headers that Swift cannot call as they are: variadic functions, macros, calls that Glibc's module leaves out.
    .target(name: "CCurl", cSettings: [.headerSearchPath("../CShared")]),
    .target(name: "CLinux"),
    .target(
      name: "CChecksum", cSettings: [.headerSearchPath("../CShared")], linkerSettings: [.linkedLibrary("z")]),
    .target(
      name: "CDigest", cSettings: [.headerSearchPath("../CShared")], linkerSettings: [.linkedLibrary("nettle")]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),

    .target(
      name: "Spool",
      dependencies: [
        "CChecksum", "CLinux", "CDigest", .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: readmes("Claiming", "Cleanup", "Data", "FileSystem", "Format", "Job", "Moves", "Workers"),
      swiftSettings: swiftSettings),
    .target(name: "Transfer", dependencies: ["CCurl"], exclude: readmes(), swiftSettings: swiftSettings),
    .target(
      name: "SpoolWorker",
      dependencies: [
        "CLinux", "Spool", "Transfer", .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: readmes("Download", "Job", "Platform", "Schedule", "Standing"),
      swiftSettings: swiftSettings),
    .target(
      name: "SpoolStatus",
      dependencies: ["Spool", "SpoolWorker", .product(name: "SystemPackage", package: "swift-system")],
      exclude: readmes(),
      swiftSettings: swiftSettings),
    // The page that `report` writes.
    .target(
      name: "SpoolReport",
      dependencies: ["Spool", "SpoolStatus"],
      swiftSettings: swiftSettings),
    // Lists of downloads in the formats of other programs. Only the command imports it, never the worker.
    .target(
      name: "SpoolLists",
      dependencies: ["CExpat", "CZlib", "Spool", .product(name: "SystemPackage", package: "swift-system")],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "spoolrun",
      dependencies: [
        "CLinux", "Spool", "SpoolLists", "SpoolReport", "SpoolStatus", "SpoolWorker", "Transfer",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: readmes(),
      swiftSettings: swiftSettings, linkerSettings: standalone),
    // Reads the lists that standing orders watch, in a process of its own.
    .executableTarget(
      name: "spoolrun-entries",
      dependencies: [
        "CLinux", "Spool", "SpoolLists", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: swiftSettings, linkerSettings: standalone),

    .target(
      name: "TestSupport", path: "Tests/Support", exclude: ["lsan-suppressions", "tsan-suppressions"],
      swiftSettings: optimized),
    .executableTarget(
      name: "FaultRig",
      dependencies: [
        "CLinux", "Spool", "SpoolWorker", "Transfer",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/Crashes/FaultRig", swiftSettings: swiftSettings, linkerSettings: standalone),
    .executableTarget(
      name: "LyingServer", dependencies: ["TestSupport"], path: "Tests/LyingServers/Server",
      swiftSettings: optimized),
    .target(
      name: "FuzzProperties", dependencies: ["Spool", "SpoolLists", "SpoolWorker", "Transfer"],
      path: "Tests/Fuzz/Properties",
      swiftSettings: swiftSettings),
    // Few targets, and folders inside them: each target of its own would add a module to every build.
    .testTarget(
      name: "UnitTests",
      dependencies: [
        "CCurl", "CZlib", "Spool", "SpoolLists", "SpoolReport", "SpoolStatus", "SpoolWorker", "TestSupport",
        "Transfer",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/Units", exclude: ["SpoolLists/Samples"], swiftSettings: unoptimized),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Spool", "SpoolWorker", "TestSupport", "spoolrun",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/EndToEnd", swiftSettings: unoptimized),
    .testTarget(
      name: "SimulationTests",
      dependencies: [
        "Spool", "SpoolWorker", "TestSupport", "Transfer", .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/Simulation",
      swiftSettings: optimized),
    .testTarget(
      name: "LyingServerTests", dependencies: ["LyingServer", "Spool", "TestSupport"],
      path: "Tests/LyingServers/Tests", swiftSettings: unoptimized),
    .testTarget(
      name: "CrashMatrixTests", dependencies: ["Spool", "TestSupport"],
      path: "Tests/Crashes/Matrix", swiftSettings: optimized),
    .testTarget(
      name: "DocumentationTests", dependencies: ["Spool", "SpoolWorker", "TestSupport"],
      path: "Tests/Documents", swiftSettings: unoptimized),
    .testTarget(
      name: "CorpusTests", dependencies: ["FuzzProperties", "TestSupport"],
      path: "Tests/Fuzz", exclude: ["CLibFuzzer", "Corpus", "Properties", "Rig"], swiftSettings: unoptimized),
  ] + fuzzing,
  swiftLanguageModes: [.v6])

// An optimised build of all tests takes a quarter of an hour, of this one a minute.
if Context.environment["SPOOLRUN_TESTS"] == "simulation" {
  package.targets.removeAll { $0.type == .test && $0.name != "SimulationTests" }
}
