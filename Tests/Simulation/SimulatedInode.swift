extension SimulatedDisk.Inode {
  /// Its bytes get to the disk, but for those that are lost.
  func flush() {
    var disk = bytes
    for range in lost {
      for index in range where index < disk.count { disk[index] = index < durableBytes.count ? durableBytes[index] : 0 }
    }
    durableBytes = disk
  }

  func losePages() {
    let differs = bytes.indices.filter { $0 >= durableBytes.count || bytes[$0] != durableBytes[$0] }
    if let first = differs.first, let last = differs.last { lost.append(first..<last + 1) }
  }

  /// What is written again can get to the disk.
  func keepLost(outside written: Range<Int>) {
    lost = lost.flatMap { Self.parts(of: $0, outside: written) }
  }

  private static func parts(of range: Range<Int>, outside written: Range<Int>) -> [Range<Int>] {
    var parts: [Range<Int>] = []
    if range.lowerBound < written.lowerBound {
      parts.append(range.lowerBound..<min(range.upperBound, written.lowerBound))
    }
    if written.upperBound < range.upperBound {
      parts.append(max(range.lowerBound, written.upperBound)..<range.upperBound)
    }
    return parts
  }
}
