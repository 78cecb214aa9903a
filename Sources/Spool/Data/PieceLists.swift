internal import Glibc

/// The lists of pieces in the spool's `pieces/`, by their digests. The text of a job proves its list, so it does not
/// matter who has written there; and any number of jobs may have the same one.
package struct PieceLists {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  static let directory = OtherDirectory.pieces.rawValue

  static func path(_ list: FileName) -> Path { Path(Array("\(directory)/".utf8) + list.bytes) }

  private static func path(_ key: PieceKey) -> Path { path(FileName("\(key.list)")) }

  /// Puts a list where the jobs that name it find it, and makes it durable: before the first of them is dropped.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop jobs.
  package func keep(_ list: PieceList) throws(SpoolError) {
    try spool.provide(Path(Self.directory))
    // In place of one that may be damaged, or so old that `clean` is about to remove it.
    try spool.write(list.text, to: Self.path(list.key), isFlushed: true)
    try spool.system.open(spool.root, Path(Self.directory), O_RDONLY | O_DIRECTORY).fsync()
  }

  /// - Throws: `no-pieces` where there is no such list, or another; ``SpoolError``.
  package func list(_ key: PieceKey) throws -> PieceList {
    let path = Self.path(key)
    // A file that went while it was read is a failure of the disk, and not this one.
    guard try spool.system.statusIfPresent(spool.root, path)?.isRegular == true else {
      throw Failure(.noPieces, "\(path.display) is missing")
    }
    let text = try spool.openText(path).read(limit: PieceList.longest + 1)
    guard let list = PieceList(text, keepsText: false), list.key == key else {
      throw Failure(.noPieces, "\(path.display) is not the list that `pieces:` names")
    }
    return list
  }
}

package struct PieceReading: Sendable {
  let list: PieceList
  let file: SharedFile
  let size: UInt64

  /// Whether a piece, counted from 0, is right; on any thread.
  package func isRight(_ piece: Int) throws(SpoolError) -> Bool {
    var state = HashState(list.key.algorithm)
    try file.readBlocks(list.range(of: piece, in: size)) { (bytes, _) throws(SpoolError) in state.update(bytes) }
    return list.isRight(piece, state)
  }
}
