/**
 * The pipe between a worker and its Python tasks: batches of a compact binary form, or Storm's JSON for components that
 * do not know it.
 *
 * <p>{@link leeward.multilang.FrameSerializer} is what Storm makes for each shell component when
 * {@code topology.multilang.serializer} names it. The classes travel in the topology jar; nothing is installed.
 */
package leeward.multilang;
