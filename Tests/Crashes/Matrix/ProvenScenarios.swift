import Glibc
import TestSupport

/// A payload whose signature is checked before it is published.
extension Scenario {
  static let signed = [
    Scenario(
      name: "signed",
      setUp: { world in
        guard mkdir(world.spool.path("keys"), 0o700) == 0 else { throw TestSupportError("mkdir", "keys", errno: errno) }
        try writeFile(world.spool.path("keys/a.pub"), Array(Version.key.utf8))
        guard chmod(world.spool.path("keys/a.pub"), 0o600) == 0 else {
          throw TestSupportError("chmod", "a.pub", errno: errno)
        }
        try world.drop("signature: \(world.url("a.bin.minisig"))")
      },
      answer: { _, request, reply in
        if request.target.hasSuffix(".minisig") {
          return try reply.respond("200 OK", body: Array(Version.signature.utf8))
        }
        try Version.current.serve(request, reply)
      })
  ]
}

extension Version {
  /// Of minisign(1).
  fileprivate static let key = """
    untrusted comment: minisign public key
    RWR6HD1CWic/FdW2OS+it8hSJm5hCWSRgbQK0U2tL+DrVtkRfCMoZL/E

    """
  /// Of ``current``, by that key.
  fileprivate static let signature = """
    untrusted comment: signature from minisign secret key
    RUR6HD1CWic/FY+ksX08owmu6brHv+iRHed/j22L5Lw+f+iLJBHLWx3JAZmTfVYKM8i7K18bDEKlydiUZpUHFuEeubH+4yiFWQo=
    trusted comment: timestamp:1795698609
    l2mgxeuu4VnU76dIX9uUGBUc9gvARLObdpVRpsxTkkpckNS9CDLnjFvhcVbCtGjR8peHFPic3fHLVmVXoxghAg==

    """
}

/// Data of which a piece is wrong, and is replaced in its place.
extension Scenario {
  static let inPieces = [
    Scenario(
      name: "pieces", setUp: { try $0.dropWithPieces() },
      answer: { world, request, reply in
        if world.hasMark("all with a wrong piece") { return try Version.current.serve(request, reply) }
        try Version.flipped.serve(request, reply) { try world.awaitCheckpoint($0) }
        _ = world.isFirst("all with a wrong piece")
      }),
    Scenario(
      // As `verify --refetch` leaves it.
      name: "refetch", jobs: [Job(output: "a.bin", before: Version.flipped.bytes)],
      setUp: { world in
        try writeFile(world.spool.path("files/a.bin"), Version.flipped.bytes)
        try world.dropWithPieces("overwrite: yes", "size: \(Version.length)", "crc32: \(Version.current.crc32)")
      }),
    Scenario(
      name: "pieces, several connections", options: { _ in ["connections=3"] }, setUp: { try $0.dropWithPieces() },
      answer: { world, request, reply in
        if request.rangeStart == 4096, request.rangeEnd == 8191 { return try Version.current.serve(request, reply) }
        try Version.flipped.serve(request, reply)
      }),
  ]
}

extension World {
  fileprivate func dropWithPieces(_ lines: String...) throws {
    guard mkdir(spool.path("pieces"), 0o700) == 0 else { throw TestSupportError("mkdir", "pieces", errno: errno) }
    try writeFile(spool.path("pieces/\(Version.pieceList)"), Array(Version.pieces.utf8))
    try spool.drop("a", job(["pieces: sha256 4k \(Version.pieceList)"] + lines, output: "a.bin"))
  }
}
