import TestSupport
import Testing

@testable import Spool

/// Digests as their standards and other tools compute them, and states from which they can be carried on.
@Suite struct HashStateTests {
  private static let strong = DigestAlgorithm.allCases.filter { $0 != .crc32 }

  private func state(_ algorithm: DigestAlgorithm, _ bytes: some Collection<UInt8>) throws -> HashState {
    var state = HashState(algorithm)
    Array(bytes).withUnsafeBytes { state.update($0) }
    return state
  }

  private func digest(_ algorithm: DigestAlgorithm, _ bytes: some Collection<UInt8>) throws -> String {
    Digest(try state(algorithm, bytes)).description
  }

  private func noise(_ length: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(length))
    return (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  /// RFC 1321 A.5; the examples of FIPS 180-4 that NIST publishes ("abc" and the message of two blocks).
  @Test(
    arguments: [
      (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
      (
        .md5, "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "57edf4a22be3c955ac49da2e2107b67a"
      ),
      (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (
        .sha1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
      ),
      (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        .sha512, "abc",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
          + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
      ),
      // RFC 7693, appendix A; FIPS 202's examples; the check values of both CRCs.
      (
        .blake2b, "abc",
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
          + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
      ),
      (.sha3, "abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
      (.crc32c, "123456789", "e3069283"), (.crc64nvme, "123456789", "ae8b14860a799888"),
    ] as [(DigestAlgorithm, String, String)])
  func published(algorithm: DigestAlgorithm, message: String, expected: String) throws {
    #expect(try digest(algorithm, Array(message.utf8)) == expected)
  }

  @Test(
    .enabled("needs rhash") { try await Need.program("rhash").isMet() },
    arguments: [0, 1, 55, 56, 64, 111, 128, 1_000_003])
  func agreesWithOtherTools(length: Int) async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/data"
    try writeFile(path, noise(length))
    for algorithm in Self.strong {
      let ours = try digest(algorithm, noise(length))
      if ![.sha3, .crc32c, .crc64nvme].contains(algorithm) {
        let tool = algorithm == .blake2b ? "b2sum" : "\(algorithm.rawValue)sum"
        #expect(try await runTool(["/usr/bin/\(tool)", path]).output == "\(ours)  \(path)\n")
      }
      if algorithm == .crc64nvme { continue }
      let rhash = try await runTool(["/usr/bin/rhash", "--simple", "--\(algorithm.rawValue)", path]).output
      #expect(rhash.hasPrefix("\(ours) "))
    }
  }

  /// Each cut within two blocks, for a state that came in one piece and in pieces.
  @Test(arguments: strong)
  func carriedOnFromASavedState(algorithm: DigestAlgorithm) throws {
    let bytes = noise(700)
    let whole = try state(algorithm, bytes)
    for cut in Array(0...260) + [511, 512, 513, 700] {
      var pieces = try state(algorithm, bytes[..<(cut / 3)])
      Array(bytes[(cut / 3)..<cut]).withUnsafeBytes { pieces.update($0) }
      let saved = try #require(pieces.saved)
      #expect(try saved == state(algorithm, bytes[..<cut]).saved, "however the bytes came")
      var restored = try #require(HashState(saved[...], length: UInt64(cut)))
      #expect(restored == pieces)
      Array(bytes[cut...]).withUnsafeBytes { restored.update($0) }
      #expect(restored == whole && Digest(restored) == Digest(whole))
    }
  }

  /// The state is the standard's, so that it holds on each machine: the initial value of SHA-256 (FIPS 180-4, 5.3.3).
  @Test func theSavedStateIsTheStandards() throws {
    #expect(
      try state(.sha256, []).saved
        == "sha256/1:6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19")
    #expect(try state(.md5, Array("ab".utf8)).saved == "md5/1:67452301efcdab8998badcfe103254766162")
  }

  /// A journal is a text that anybody may have written: no state of it may lead beyond a context's bounds.
  @Test func whatIsNoStateIsRefused() throws {
    let bytes = noise(100)
    let saved = try #require(state(.sha256, bytes).saved)
    #expect(HashState(saved[...], length: 100) != nil)
    for length in [0, 64, 99, 101, 128, UInt64.max] { #expect(HashState(saved[...], length: length) == nil) }
    for text in [
      saved.replacing("/1:", with: "/2:"), saved.replacing("sha256", with: "sha224"),
      saved.replacing("sha256", with: "sha512"), saved.replacing("sha256", with: "crc32"), String(saved.dropLast()),
      String(saved.dropLast(2)), saved + "00", saved.dropLast() + "g", "", "sha256", "sha256/1", "sha256/1:", ":", "/",
    ] {
      #expect(HashState(text[...], length: 100) == nil, "\(text)")
    }
  }
}

/// Digests on a thread beside the one that brings the bytes.
@Suite struct HashingQueueTests {
  /// Pieces of all sizes, more of them than may wait.
  @Test func computesTheSame() throws {
    var generator = SeededGenerator(seed: 11)
    let algorithms = Set(DigestAlgorithm.allCases)
    let queue = HashingQueue(DigestStates(algorithms).all)
    var expected = DigestStates(algorithms)
    for round in 0..<60 {
      let length = [0, 1, 4000, Block.size, Block.size * 5 + 17, 40_000][round % 6]
      let bytes = [UInt8](repeating: UInt8.random(in: 0...255, using: &generator), count: length)
      bytes.withUnsafeBytes {
        queue.update($0)
        expected.update($0)
      }
      if round % 7 == 6 { #expect(queue.finish() == expected.all) }
    }
    #expect(queue.finish() == expected.all)
    #expect(queue.finish() == expected.all, "asked again")
  }

  /// CRC-32 on this thread, the others on one of their own.
  @Test(arguments: [[], [.sha256], [.sha512, .md5]] as [Set<DigestAlgorithm>])
  func besideEachOther(algorithms: Set<DigestAlgorithm>) {
    var begun = DigestStates(algorithms)
    [1, 2, 3].withUnsafeBytes { begun.update($0) }
    let running = RunningDigests(begun)
    for round in 0..<40 {
      let block = Block()
      block.memory.initializeMemory(as: UInt8.self, repeating: UInt8(round))
      let bytes = UnsafeRawBufferPointer(rebasing: block.memory[..<(round % 4 == 3 ? 100 : Block.size)])
      begun.update(bytes)
      running.update(bytes, in: round % 5 == 0 ? nil : block)
      if round % 9 == 8 { #expect(running.states == begun) }
    }
    #expect(running.states == begun && running.states.digests == begun.digests)
  }

  /// Blocks are read where they are, and let go of.
  @Test func readsBlocks() {
    let queue = HashingQueue(DigestStates([.sha512, .md5]).all)
    var expected = DigestStates([.sha512, .md5])
    weak var last: Block?
    for round in 0..<40 {
      let block = Block()
      block.memory.initializeMemory(as: UInt8.self, repeating: UInt8(round))
      let bytes = UnsafeRawBufferPointer(rebasing: block.memory[..<(round % 4 == 3 ? 100 : Block.size)])
      expected.update(bytes)
      queue.update(bytes, in: block)
      last = block
    }
    #expect(queue.finish() == expected.all)
    #expect(last == nil)
  }
}
