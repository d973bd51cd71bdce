"""The partitions of an image that need looking after, and the names of its topics.

Elections wait in partitions without a leader, and moves are under way in some; among thousands both
are few, and every event asks for them. Both are kept by what changes, and not looked for.
"""

from barnabas_broker.cluster.image import NO_LEADER, MetadataImage, PartitionState
from barnabas_broker.controller.topics import TakenNames
from barnabas_kafka.ids import TopicPartition


class PartitionIndex:
    """Leaderless and moving partitions of the image that `follow` was called with last.

    Both are in the order in which that came to be so. `names` are those of its topics.
    """

    def __init__(self) -> None:
        self.leaderless: dict[TopicPartition, None] = {}
        self.moving: dict[TopicPartition, None] = {}
        self.names = TakenNames()
        self._image = MetadataImage(cluster_id="")

    def follow(self, image: MetadataImage) -> None:
        """Go by this image from now on; it costs what is different."""
        for each in image.differences(self._image):
            if each.before is None:
                self.names.add(each.name)
            elif each.after is None:
                self.names.remove(each.name)
            if each.replaced and each.before is not None:
                for number in range(len(each.before.partitions)):
                    self._drop(TopicPartition(each.name, number))
            for number, _, state in each.partitions():
                self._note(TopicPartition(each.name, number), state)
        self._image = image

    def _note(self, tp: TopicPartition, state: PartitionState) -> None:
        self._keep_if(state.leader == NO_LEADER, self.leaderless, tp)
        self._keep_if(bool(state.adding or state.removing), self.moving, tp)

    def _drop(self, tp: TopicPartition) -> None:
        self.leaderless.pop(tp, None)
        self.moving.pop(tp, None)

    @staticmethod
    def _keep_if(holds: bool, among: dict[TopicPartition, None], tp: TopicPartition) -> None:
        if holds:
            among[tp] = None
        else:
            among.pop(tp, None)
